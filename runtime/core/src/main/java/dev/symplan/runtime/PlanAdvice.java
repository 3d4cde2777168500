package dev.symplan.runtime;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.planner.machine.BackendVariants;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import java.util.Optional;

/**
 * Messages about a plan that cannot run as it is, for example because it comes from another
 * machine.
 */
public final class PlanAdvice {
  private PlanAdvice() {}

  /** {@return which collective of a plan a backend does not carry out; empty if it does all} */
  public static Optional<String> lacking(Plan plan, BackendVariants backend) {
    return plan.rankPlans().stream()
        .flatMap(
            rankPlan ->
                rankPlan.collectives().stream()
                    .flatMap(
                        collective ->
                            backend.lack(collective.spec()).stream()
                                .map(
                                    lack ->
                                        "%s, but %s%s"
                                            .formatted(
                                                planned(rankPlan, collective),
                                                lack,
                                                backend.has(collective.kind())
                                                    ? "; " + anew(plan, backend)
                                                    : ""))))
        .findFirst();
  }

  private static String anew(Plan plan, BackendVariants backend) {
    var name = plan.target().name();
    return anew(
        plan,
        plan.worldSize(),
        (Target.names().contains(name) ? " --target " + name : "")
            + " --backend "
            + backend.backend());
  }

  /** {@return a collective, with its line and its variant} */
  public static String planned(RankPlan rankPlan, CollectivePlan collective) {
    var op = rankPlan.graph().ops().get(collective.op());
    return "%s '%s' (%s) is planned as %s"
        .formatted(
            collective.kind().text(),
            op.results().isEmpty() ? op.def().name() : op.results().getFirst().name(),
            op.span().shortForm(),
            collective.variant().text());
  }

  /**
   * {@return the command that makes a plan that can run}
   *
   * @param options each after a space
   */
  public static String anew(Plan plan, int ranks, String options) {
    return "make a new plan, with the same other options: symplan compile %s --ranks %s%s -o PLAN"
        .formatted(source(plan), ranks, options);
  }

  /** The file that a plan was made from, as its user named it. */
  private static String source(Plan plan) {
    return plan.rankPlans().stream()
        .flatMap(rankPlan -> rankPlan.graph().ops().stream())
        .map(op -> op.span().file())
        .filter(file -> !file.equals(SourceFile.NONE))
        .map(SourceFile::name)
        .findFirst()
        .orElse("GRAPH");
  }
}
