package dev.symplan.planner.plan;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.Longs;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.joint.ProgramGraph;
import java.util.Arrays;

/**
 * The plan of the ranks that run one graph.
 *
 * @param graph the planned graph: functional, with the copies that staging needs as ops of their
 *     own, and {@link Graph#numbered}
 * @param placements where each value is, by value id
 * @param local the local arena; its bound counts what the holes of the symmetric arena cannot take
 */
public record RankPlan(
    Graph graph,
    ImmutableList<Placement> placements,
    ImmutableList<Buffer> buffers,
    ImmutableList<Step> steps,
    ImmutableList<CollectivePlan> collectives,
    ArenaSize local) {

  public RankPlan {
    if (placements.size() != graph.valueCount()) {
      throw new IllegalArgumentException(
          "%s placements for %s values".formatted(placements.size(), graph.valueCount()));
    }
  }

  /**
   * {@return the most bytes of the rank's own memory, in both arenas, that are live at one step: no
   * placement needs less}
   */
  public long maxLive() {
    var change = new long[steps.size() + 3];
    for (var buffer : buffers) {
      if (buffer.arena().isPlanned()) {
        change[buffer.first() + 1] += buffer.alignedBytes();
        change[buffer.last() + 2] -= buffer.alignedBytes();
      }
    }
    Arrays.parallelPrefix(change, Long::sum);
    return Longs.max(change);
  }

  /** {@return the bytes of host memory that the rank needs for what is offloaded} */
  public long hostBytes() {
    return buffers.stream()
        .filter(buffer -> buffer.arena() == ArenaKind.HOST)
        .mapToLong(buffer -> buffer.offset() + buffer.alignedBytes())
        .max()
        .orElse(0);
  }

  /** {@return the collective in whose kernel a step runs, or -1; see {@link Epilogue}} */
  public int epilogueOf(int step) {
    return step > 0
            && steps.get(step - 1) instanceof Step.Start(int k)
            && collectives.get(k).hasEpilogue()
        ? k
        : -1;
  }

  /** {@return the ops before which another graph of the program begins, ascending} */
  public ImmutableList<Integer> borders() {
    var borders = ImmutableList.<Integer>builder();
    for (int op = 0; op < graph.ops().size(); op++) {
      if (ProgramGraph.isBorder(graph.ops().get(op))) {
        borders.add(op);
      }
    }
    return borders.build();
  }

  /** {@return the step that ends what a session runs once, before its first run; -1 for none} */
  public int setupEnd() {
    int end = ProgramGraph.setupEnd(graph);
    return end < 0 ? end : steps.indexOf(new Step.Compute(end));
  }

  /** {@return the graphs that the rank runs one after the other} */
  public ImmutableList<ProgramGraph> graphs() {
    return ProgramGraph.allOf(graph);
  }

  /** {@return where a value is; {@link Placement#NONE} if it has no memory} */
  public Placement placement(Value value) {
    return placements.get(value.id());
  }

  /**
   * {@return the buffer of a value that has one}
   *
   * @throws IllegalArgumentException for numbers and None
   */
  public Buffer buffer(Value value) {
    var placement = placement(value);
    if (!placement.exists()) {
      throw new IllegalArgumentException(value.name() + " has no memory");
    }
    return buffers.get(placement.buffer());
  }
}
