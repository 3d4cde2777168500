package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.machine.Eligibility;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import java.util.Optional;

/**
 * What a plan needs that the backend, or this machine, does not have. A plan file may come from
 * another machine, or from a target that says more than there is.
 *
 * @param gpus how many GPUs this process sees
 * @param nccl NCCL's version as {@code major * 10000 + minor * 100 + patch}
 */
record PlanNeeds(int gpus, int nccl) {

  /**
   * {@return what is missing for a plan, with the line and the command that plans it anew; empty if
   * nothing is}
   *
   * @param alone whether this process has all ranks
   */
  Optional<String> lacking(Plan plan, boolean alone) {
    if (alone && plan.worldSize() > gpus) {
      return Optional.of(
          "the plan is for %d ranks, but there %s; %s"
              .formatted(
                  plan.worldSize(),
                  gpus == 1 ? "is one GPU" : "are " + gpus + " GPUs",
                  anew(plan, gpus, "")));
    }
    var eligibility = new Eligibility(plan.target().withNccl("this machine", nccl), false);
    return plan.rankPlans().stream()
        .flatMap(
            rankPlan ->
                rankPlan.collectives().stream()
                    .flatMap(
                        collective -> lacking(plan, rankPlan, collective, eligibility).stream()))
        .findFirst();
  }

  private Optional<String> lacking(
      Plan plan, RankPlan rankPlan, CollectivePlan collective, Eligibility machine) {
    var op = rankPlan.graph().ops().get(collective.op());
    return switch (collective.variant()) {
      case MULTIMEM ->
          Optional.of(
              "%s, but backend cuda does not create NVLink multicast objects yet; %s"
                  .formatted(
                      planned(op, collective),
                      anew(plan, plan.worldSize(), target(plan) + " --multicast=off")));
      case NCCL_SYMM, NCCL_CE, NCCL ->
          machine
              .reject(
                  request(rankPlan, op, collective),
                  collective.variant(),
                  plan.group(collective.group()))
              .map(
                  rejection ->
                      "%s, but %s; put \"nccl\": \"%s\" in a target file, and %s"
                          .formatted(
                              planned(op, collective),
                              rejection.detail(),
                              Target.ncclVersion(nccl),
                              anew(plan, plan.worldSize(), " --target FILE")));
      case LOCAL, ONE_SHOT, ONE_SHOT_PUSH, TWO_SHOT, TWO_SHOT_PUSH, PUSH, COPY_ENGINE, CUSTOM ->
          Optional.empty();
    };
  }

  private static Eligibility.Request request(RankPlan rankPlan, Op op, CollectivePlan collective) {
    var values = rankPlan.graph().values();
    ImmutableList<Value> operands =
        collective.operands().stream().map(values::get).collect(ImmutableList.toImmutableList());
    return new Eligibility.Request(op, collective.kind(), collective.reduceOp(), operands);
  }

  private static String planned(Op op, CollectivePlan collective) {
    return "%s '%s' (%s) is planned as %s"
        .formatted(
            collective.kind().text(),
            op.results().isEmpty() ? op.def().name() : op.results().getFirst().name(),
            op.span().shortForm(),
            collective.variant().text());
  }

  private static String target(Plan plan) {
    var name = plan.target().name();
    return Target.names().contains(name) ? " --target " + name : "";
  }

  private static String anew(Plan plan, int ranks, String options) {
    return "make a new plan, with the same other options: symplan compile %s --ranks %d%s -o PLAN"
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
