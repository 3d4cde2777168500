package dev.symplan.planner.cost;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;

/** The times of the steps of a finished plan, each by itself. */
public final class StepCosts {
  private final CostModel costs;
  private final RankPlan plan;
  private final ImmutableList<Value> values;

  /** Predicts the times of a plan's steps. */
  public StepCosts(CostModel costs, RankPlan plan) {
    this.costs = costs;
    this.plan = plan;
    this.values = plan.graph().values();
  }

  /**
   * {@return the time of a local step, in µs; what it adds to that of the collective in whose
   * kernel it runs; 0 for the start and the join of a collective}
   */
  public double computeMicros(int step) {
    if (plan.epilogueOf(step) >= 0) {
      return costs.streamedMicros(Work.ofStep(plan, step).bytes());
    }
    return switch (plan.steps().get(step)) {
      case Step.Compute(int op) -> micros(plan.graph().ops().get(op));
      case Step.Fused _ -> costs.kernelMicros(Work.ofStep(plan, step).bytes());
      case Step.Start _, Step.Join _ -> 0;
    };
  }

  /** {@return the bytes of a collective's operands on one rank} */
  public long operandBytes(CollectivePlan collective) {
    return collective.operands().stream().mapToLong(id -> values.get(id).tensor().bytes()).sum();
  }

  private double micros(Op op) {
    return isJoined(op) ? 0 : costs.computeMicros(op);
  }

  /** Whether what a concatenation joins was written where its result lies. */
  private boolean isJoined(Op op) {
    if (!op.def().has(OpTrait.CONCATENATION)) {
      return false;
    }
    var result = plan.placement(op.result());
    long next = result.offset();
    for (var piece : op.args().getFirst().operands()) {
      var placement = plan.placement(piece);
      if (piece.tensor().numel() > 0
          && (placement.buffer() != result.buffer()
              || placement.offset() != next
              || placement.isShard())) {
        return false;
      }
      next += piece.tensor().bytes();
    }
    return true;
  }
}
