package dev.symplan.planner.report;

import com.google.common.primitives.ImmutableDoubleArray;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.cost.StepCosts;
import dev.symplan.planner.cost.Timeline;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;

/**
 * The predicted begin and end of each step of a plan on its own stream, in µs from the start of a
 * run: the cost model's times, one after the other, as the planner adds them up.
 *
 * @param begin by step; for the start of a collective on a side stream, when the stream is free
 * @param end by step
 * @param total of all steps
 */
record PredictedTimes(ImmutableDoubleArray begin, ImmutableDoubleArray end, double total) {

  static PredictedTimes of(Plan plan, RankPlan rankPlan) {
    var costs = new CostModel(plan.target());
    var work = new StepCosts(costs, rankPlan);
    var transfers = new double[rankPlan.collectives().size()];
    for (int k = 0; k < transfers.length; k++) {
      var collective = rankPlan.collectives().get(k);
      transfers[k] =
          costs.transferMicros(
              collective.kind(),
              collective.variant(),
              work.operandBytes(collective),
              collective.operands().size(),
              plan.topology().reach(plan.group(collective.group())));
    }
    var timeline = new Timeline(costs, transfers);
    int count = rankPlan.steps().size();
    var begin = new double[count];
    var end = new double[count];
    for (int i = 0; i < count; i++) {
      begin[i] = timeline.micros();
      switch (rankPlan.steps().get(i)) {
        case Step.Compute(int index) -> {
          var op = rankPlan.graph().ops().get(index);
          timeline.local(op, work.computeMicros(i));
          if (op.def().has(OpTrait.HOST_COPY)) {
            var copy = timeline.copy(op.result()).orElseThrow();
            begin[i] = copy.begin();
            end[i] = copy.end();
            continue;
          }
        }
        case Step.Fused _ -> timeline.compute(work.computeMicros(i));
        case Step.Start(int k) -> {
          var stream = rankPlan.collectives().get(k).stream();
          timeline.start(k, stream, work.makerMicros(i));
          if (stream != StreamKind.COMPUTE) {
            begin[i] = timeline.begin(k);
            end[i] = begin[i] + transfers[k];
            continue;
          }
        }
        case Step.Join(int k) -> timeline.join(k, rankPlan.collectives().get(k).variant());
      }
      end[i] = timeline.micros();
    }
    return new PredictedTimes(
        ImmutableDoubleArray.copyOf(begin), ImmutableDoubleArray.copyOf(end), timeline.micros());
  }

  /** {@return how many ranks a group has; all, where the plan has no such group} */
  static int groupSize(Plan plan, String name) {
    return plan.groups().stream()
        .filter(group -> group.name().equals(name))
        .mapToInt(group -> group.size())
        .findFirst()
        .orElse(plan.worldSize());
  }
}
