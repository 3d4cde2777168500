package dev.symplan.planner.pass.place;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.ArenaSize;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.RankPlan;
import java.util.List;

/**
 * The symmetric arena of stages that were planned by themselves: as large as the one that needs
 * most, since it has one size on all ranks. What is behind the symmetric buffers of another stage
 * holds local buffers of it.
 */
public final class SymmetricArena {
  private SymmetricArena() {}

  /** {@return the arena that all stages have} */
  public static ArenaSize ofStages(List<ArenaSize> stages) {
    return new ArenaSize(
        stages.stream().mapToLong(ArenaSize::bytes).max().orElseThrow(),
        stages.stream().mapToLong(ArenaSize::bound).max().orElseThrow());
  }

  /**
   * {@return the plans of a stage in a larger symmetric arena}
   *
   * @param own what the stage needs of it
   */
  public static ImmutableList<RankPlan> enlarged(
      ImmutableList<RankPlan> stage, ArenaSize own, ArenaSize all) {
    return own.bytes() == all.bytes()
        ? stage
        : stage.stream()
            .map(plan -> enlarged(plan, own.bytes(), all.bytes()))
            .collect(toImmutableList());
  }

  private static RankPlan enlarged(RankPlan plan, long from, long to) {
    long moved = moved(plan, to - from);
    var buffers =
        plan.buffers().stream()
            .map(buffer -> buffer.arena() == ArenaKind.LOCAL ? moved(buffer, moved, from) : buffer)
            .collect(toImmutableList());
    long bytes = Math.max(0, plan.local().bytes() - moved);
    return new RankPlan(
        plan.graph(),
        plan.placements(),
        buffers,
        plan.steps(),
        plan.collectives(),
        new ArenaSize(bytes, Math.max(0, plan.local().bound() - (to - from))));
  }

  /** The most bytes of the local arena that fit, of which no buffer has only a part. */
  private static long moved(RankPlan plan, long room) {
    var local =
        plan.buffers().stream().filter(buffer -> buffer.arena() == ArenaKind.LOCAL).toList();
    long cut = Math.min(room, plan.local().bytes());
    for (boolean found = false; !found; ) {
      long at = cut;
      long before =
          local.stream()
              .filter(
                  buffer -> buffer.offset() < at && at < buffer.offset() + buffer.alignedBytes())
              .mapToLong(Buffer::offset)
              .min()
              .orElse(at);
      found = before == cut;
      cut = before;
    }
    return cut;
  }

  private static Buffer moved(Buffer buffer, long moved, long from) {
    boolean fits = buffer.offset() + buffer.alignedBytes() <= moved;
    return new Buffer(
        buffer.name(),
        fits ? ArenaKind.SYMMETRIC : ArenaKind.LOCAL,
        buffer.symmetric(),
        fits ? from + buffer.offset() : buffer.offset() - moved,
        buffer.bytes(),
        buffer.first(),
        buffer.last());
  }
}
