package dev.symplan.runtime.fuzz;

import com.google.common.base.Ascii;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.testkit.Cuts;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.OrderDecision.Outcome;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Step;
import java.util.Set;
import java.util.TreeSet;

/** The decisions that a plan shows, by names: random programs are to reach all of them. */
final class Decisions {
  private final Set<String> found = new TreeSet<>();

  private Decisions() {}

  static Set<String> of(Plan plan) {
    var decisions = new Decisions();
    decisions.add("several graphs", !plan.forRank(0).borders().isEmpty());
    decisions.add("graphs with copies", Cuts.hasCopies(plan.forRank(0).graph()));
    decisions.add("ranks with graphs of their own", plan.rankPlans().size() > 1);
    decisions.add("several hosts", plan.topology().hosts().length() > 1);
    decisions.add("inputs that ranks have alike", !plan.replicated().isEmpty());
    decisions.add("another order", plan.reordering().outcome() == Outcome.REORDERED);
    plan.rewrites().stream()
        .filter(Rewrite::made)
        .forEach(rewrite -> decisions.found.add(rewrite.action().text()));
    plan.rankPlans().forEach(decisions::add);
    return decisions.found;
  }

  private void add(String name, boolean reached) {
    if (reached) {
      found.add(name);
    }
  }

  private void add(RankPlan plan) {
    for (var placement : plan.placements()) {
      add("shards in the whole", placement.isShard());
      add("rows of a piece", placement.isInRows());
    }
    add("shards in columns", hasColumns(plan));
    for (var step : plan.steps()) {
      if (step instanceof Step.Fused(var indices)) {
        var ops = plan.graph().ops();
        found.add("fused steps");
        add(
            "fused steps by rows",
            indices.stream().anyMatch(i -> ops.get(i).def().has(OpTrait.ROWWISE)));
      }
    }
    plan.collectives().forEach(this::add);
  }

  private static boolean hasColumns(RankPlan plan) {
    return plan.graph().values().stream()
        .filter(value -> value.isTensor() && plan.placement(value).isShard())
        .anyMatch(value -> plan.placement(value).stride() < value.tensor().storageBytes());
  }

  private void add(CollectivePlan plan) {
    found.add(plan.kind().text() + " " + plan.variant().text());
    add("collectives beside compute", plan.isAsync());
    add("collectives in place", plan.inPlace());
    add("collectives of several tensors", plan.operands().size() > 1);
    add("barriers that others stand in for", standsIn(plan.start()) || standsIn(plan.end()));
    add("epilogues", plan.hasEpilogue());
    add("epilogues that pass on", plan.hasEpilogue() && !plan.epilogue().get().stored());
    for (var arg : plan.args()) {
      found.add(
          "%s %s"
              .formatted(
                  arg.result() ? "result" : "operand",
                  Ascii.toLowerCase(arg.reason().name()).replace('_', ' ')));
    }
  }

  private static boolean standsIn(Barrier barrier) {
    return barrier instanceof Barrier.StandIn;
  }
}
