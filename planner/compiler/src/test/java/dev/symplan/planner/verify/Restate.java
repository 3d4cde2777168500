package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.ArenaSize;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import java.util.Arrays;

/** Writes into a plan the live ranges and arena sizes that its steps and placements have. */
final class Restate {
  private Restate() {}

  static long aligned(long bytes) {
    return (bytes + 127) / 128 * 128;
  }

  static RankPlan rank(RankPlan rank) {
    int count = rank.buffers().size();
    int end = rank.steps().size();
    var first = new int[count];
    var last = new int[count];
    Arrays.fill(first, Integer.MAX_VALUE);
    Arrays.fill(last, -1);
    rank.graph().inputs().forEach(v -> touch(rank, first, last, v.id(), -1));
    rank.graph().inputs().forEach(v -> touch(rank, first, last, v.id(), end));
    for (int s = 0; s < end; s++) {
      int step = s;
      var ops =
          switch (rank.steps().get(s)) {
            case Step.Compute(int index) -> ImmutableIntArray.of(index);
            case Step.Fused(var indices) -> indices;
            case Step.Start(int k) -> ImmutableIntArray.of(rank.collectives().get(k).op());
            case Step.Join(int k) -> ImmutableIntArray.of(rank.collectives().get(k).op());
          };
      ops.forEach(
          index -> {
            var op = rank.graph().ops().get(index);
            op.operands().forEach(v -> touch(rank, first, last, v.id(), step));
            op.results().forEach(v -> touch(rank, first, last, v.id(), step));
          });
      int behind = rank.epilogueOf(s);
      if (behind >= 0) {
        rank.collectives().get(behind).operands().forEach(v -> touch(rank, first, last, v, step));
      }
    }
    rank.graph().outputValues().forEach(v -> touch(rank, first, last, v.id(), end));
    int setup = BorderOracle.setup(rank).size();
    for (int op = 0; op < setup; op++) {
      for (var result : rank.graph().ops().get(op).results()) {
        if (rank.graph().ops().stream().skip(setup).anyMatch(o -> o.operands().contains(result))) {
          touch(rank, first, last, result.id(), end);
        }
      }
    }
    var buffers = ImmutableList.<Buffer>builder();
    long local = 0;
    for (int i = 0; i < count; i++) {
      var b = rank.buffers().get(i);
      boolean used = last[i] >= first[i];
      buffers.add(
          new Buffer(
              b.name(),
              b.arena(),
              b.symmetric(),
              b.offset(),
              b.bytes(),
              used ? first[i] : b.first(),
              used ? last[i] : b.last()));
      local = b.arena() == ArenaKind.LOCAL ? Math.max(local, aligned(b.end())) : local;
    }
    return new RankPlan(
        rank.graph(),
        rank.placements(),
        buffers.build(),
        rank.steps(),
        rank.collectives(),
        new ArenaSize(local, Math.min(local, rank.local().bound())));
  }

  private static void touch(RankPlan rank, int[] first, int[] last, int value, int step) {
    int buffer = rank.placements().get(value).buffer();
    if (buffer >= 0) {
      first[buffer] = Math.min(first[buffer], step);
      last[buffer] = Math.max(last[buffer], step);
    }
  }

  /** {@return the most bytes of symmetric buffers that are alive at one step} */
  static long bound(RankPlan rank) {
    long most = 0;
    for (int step = -1; step <= rank.steps().size(); step++) {
      long live = 0;
      for (var b : rank.buffers()) {
        live += b.symmetric() && b.first() <= step && step <= b.last() ? aligned(b.bytes()) : 0;
      }
      most = Math.max(most, live);
    }
    return most;
  }
}
