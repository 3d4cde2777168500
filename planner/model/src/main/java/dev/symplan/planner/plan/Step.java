package dev.symplan.planner.plan;

import com.google.common.primitives.ImmutableIntArray;

/**
 * One entry of a rank's issue order.
 *
 * <p>A step on {@link StreamKind#COMPUTE} runs after the steps before it on that stream. A
 * collective started on a side stream runs after every compute step issued before its start, and is
 * finished for compute from its join on; between the two it runs beside compute.
 */
public sealed interface Step {

  /**
   * A local op, on the compute stream.
   *
   * @param op its index in the graph
   */
  record Compute(int op) implements Step {}

  /**
   * Local ops that go by the same rows ({@link dev.symplan.ir.graph.Rows}; elements, if all are
   * elementwise), as one kernel on the compute stream: each row passes all ops before it is done,
   * so that results which only these ops read need no memory.
   *
   * @param ops their indices in the graph, ascending
   */
  record Fused(ImmutableIntArray ops) implements Step {
    public Fused {
      if (ops.length() < 2) {
        throw new IllegalArgumentException(ops.length() + " ops cannot be a fused step");
      }
    }
  }

  /**
   * A collective is issued; on the compute stream it is also finished here.
   *
   * @param collective its index in {@link RankPlan#collectives}
   */
  record Start(int collective) implements Step {}

  /** Compute goes on only when the collective is finished; there is none on the compute stream. */
  record Join(int collective) implements Step {}
}
