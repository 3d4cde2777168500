package dev.symplan.planner.cost;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;

/** The times of the steps of a finished plan, each by itself. */
public final class StepCosts {
  private final CostModel costs;
  private final RankPlan plan;
  private final ImmutableList<Value> values;
  private final int setupEnd;

  /** Predicts the times of a plan's steps. */
  public StepCosts(CostModel costs, RankPlan plan) {
    this.costs = costs;
    this.plan = plan;
    this.values = plan.graph().values();
    this.setupEnd = plan.setupEnd();
  }

  /**
   * {@return the time of a local step, in µs; what it adds to that of the collective in whose
   * kernel it runs; 0 for the start and the join of a collective, and for the setup, which is part
   * of no run}
   */
  public double computeMicros(int step) {
    if (step < setupEnd) {
      return 0;
    }
    if (plan.epilogueOf(step) >= 0) {
      return costs.streamedMicros(Work.ofStep(plan, step).bytes());
    }
    return switch (plan.steps().get(step)) {
      case Step.Compute(int op) -> micros(plan.graph().ops().get(op));
      case Step.Fused _ -> costs.kernelMicros(Work.ofStep(plan, step).bytes());
      case Step.Start _, Step.Join _ -> 0;
    };
  }

  /**
   * {@return the time of the step before the start of a collective, in µs, as far as it runs while
   * data is on the links, since both are one kernel; 0 if they are two}
   *
   * @param start the position of the collective's start among the steps
   */
  public double makerMicros(int start) {
    if (start == 0 || !(plan.steps().get(start) instanceof Step.Start(int k))) {
      return 0;
    }
    var step = plan.steps().get(start - 1);
    var collective = plan.collectives().get(k);
    return collective.stream() == StreamKind.COMPUTE
        ? computeMicros(start - 1)
            * JoinedMakers.share(
                ops(step),
                plan.graph().ops().get(collective.op()),
                collective.variant(),
                this::memory)
        : 0;
  }

  private ImmutableList<Op> ops(Step step) {
    var ops = plan.graph().ops();
    return switch (step) {
      case Step.Compute(int op) -> ImmutableList.of(ops.get(op));
      case Step.Fused(var indices) ->
          indices.stream().mapToObj(ops::get).collect(ImmutableList.toImmutableList());
      case Step.Start _, Step.Join _ -> ImmutableList.of();
    };
  }

  private Object memory(Value value) {
    var placement = plan.placement(value);
    return placement.exists() ? placement : JoinedMakers.PASSES;
  }

  /** {@return the bytes of a collective's operands on one rank} */
  public long operandBytes(CollectivePlan collective) {
    return collective.operands().stream().mapToLong(id -> values.get(id).tensor().bytes()).sum();
  }

  private double micros(Op op) {
    if (!op.def().has(OpTrait.CONCATENATION)) {
      return costs.computeMicros(op);
    }
    long copied = copiedBytes(op);
    return copied == 0
        ? 0
        : copied == op.result().tensor().bytes()
            ? costs.computeMicros(op)
            : costs.kernelMicros(2 * copied);
  }

  /**
   * The bytes of the pieces of a concatenation that were not written where its result lies: all of
   * them unless all lie one after the other there, or some in rows.
   */
  private long copiedBytes(Op op) {
    var result = plan.placement(op.result());
    long next = result.offset();
    long inRows = 0;
    boolean oneByOne = true;
    for (var piece : op.args().getFirst().operands()) {
      var placement = plan.placement(piece);
      inRows += placement.isInRows() ? piece.tensor().bytes() : 0;
      oneByOne &=
          piece.tensor().numel() == 0
              || (placement.buffer() == result.buffer()
                  && placement.offset() == next
                  && !placement.isShard()
                  && !placement.isInRows());
      next += piece.tensor().bytes();
    }
    return oneByOne ? 0 : op.result().tensor().bytes() - inRows;
  }
}
