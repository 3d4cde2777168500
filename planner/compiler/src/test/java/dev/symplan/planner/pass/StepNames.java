package dev.symplan.planner.pass;

import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Step;
import java.util.List;

/** What runs as one step, by the names of the ops' results. */
final class StepNames {
  private StepNames() {}

  /** {@return for each step of the first rank, the names of what its ops make} */
  static List<String> steps(Plan plan) {
    var rank = plan.rankPlans().getFirst();
    var ops = rank.graph().ops();
    return rank.steps().stream()
        .map(
            step ->
                switch (step) {
                  case Step.Compute(int op) -> ops.get(op).label();
                  case Step.Fused(var list) ->
                      String.join(
                          " ", list.asList().stream().map(op -> ops.get(op).label()).toList());
                  case Step.Start _ -> "start";
                  case Step.Join _ -> "join";
                })
        .toList();
  }
}
