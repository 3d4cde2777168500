package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.machine.BackendVariants;
import dev.symplan.planner.machine.Eligibility;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.runtime.PlanAdvice;
import dev.symplan.runtime.doctor.Diagnosis.Finding;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Checks that this machine has what a plan needs. A plan file may come from another machine, or
 * from a target that promises more than the machine has.
 *
 * @param gpus how many GPUs this process sees
 * @param nccl NCCL's version as {@code major * 10000 + minor * 100 + patch}
 * @param multicast asked only for plans that use it
 */
record PlanNeeds(int gpus, int nccl, Supplier<Finding> multicast) {

  /**
   * {@return the needs of a plan that are not met, with the line and the command that plans it
   * anew; empty if all are}
   *
   * @param alone whether this process has all ranks
   */
  Optional<String> lacking(Plan plan, boolean alone) {
    if (alone && plan.worldSize() > gpus) {
      return Optional.of(
          "the plan is for %s, but there %s; %s"
              .formatted(
                  Units.count(plan.worldSize(), "rank"),
                  gpus == 1 ? "is one GPU" : "are " + gpus + " GPUs",
                  PlanAdvice.anew(plan, gpus, "")));
    }
    var withoutMulticast = lackingMulticast(plan);
    if (withoutMulticast.isPresent()) {
      return withoutMulticast;
    }
    var machine =
        new Eligibility(plan.target().withNccl("this machine", nccl), false, BackendVariants.ANY);
    return plan.rankPlans().stream()
        .flatMap(
            rankPlan ->
                rankPlan.collectives().stream()
                    .filter(collective -> collective.variant().isNccl())
                    .flatMap(collective -> lacking(plan, rankPlan, collective, machine).stream()))
        .findFirst();
  }

  /** Multicast that the user allows may be missing on the machine, or turned off by its owner. */
  private Optional<String> lackingMulticast(Plan plan) {
    return plan.rankPlans().stream()
        .flatMap(
            rankPlan ->
                rankPlan.collectives().stream()
                    .filter(collective -> collective.spec().needsMulticast())
                    .map(collective -> PlanAdvice.planned(rankPlan, collective)))
        .findFirst()
        .flatMap(
            planned -> {
              var found = multicast.get();
              return found.present()
                  ? Optional.empty()
                  : Optional.of(
                      "%s, which needs NVLink multicast: %s; %s"
                          .formatted(
                              planned,
                              found.detail(),
                              PlanAdvice.anew(plan, plan.worldSize(), " --multicast=off")));
            });
  }

  private Optional<String> lacking(
      Plan plan, RankPlan rankPlan, CollectivePlan collective, Eligibility machine) {
    return machine
        .reject(
            request(rankPlan, collective),
            collective.variant(),
            plan.group(collective.group()),
            plan.topology())
        .map(
            rejection ->
                "%s, but %s; put \"nccl\": \"%s\" in a target file, and %s"
                    .formatted(
                        PlanAdvice.planned(rankPlan, collective),
                        rejection.detail(),
                        Target.ncclVersion(nccl),
                        PlanAdvice.anew(plan, plan.worldSize(), " --target FILE")));
  }

  private static Eligibility.Request request(RankPlan rankPlan, CollectivePlan collective) {
    var graph = rankPlan.graph();
    var operands =
        collective.operands().stream()
            .map(graph.values()::get)
            .collect(ImmutableList.toImmutableList());
    return new Eligibility.Request(
        graph.ops().get(collective.op()), collective.kind(), collective.reduceOp(), operands);
  }
}
