package dev.symplan.planner.simulate;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableDoubleArray;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.cost.CostModel.Crossing;
import dev.symplan.planner.cost.StepCosts;
import dev.symplan.planner.machine.OverNetwork;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.machine.Topology.Reach;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import java.util.Objects;
import java.util.stream.IntStream;

/**
 * A plan on hosts, with the time of everything by itself, which all its simulations share.
 *
 * @param groups those that its collectives name
 * @param compute for each rank plan, the time of each step on a GPU, in µs
 * @param transfers for each rank plan, what each collective takes
 */
public record Job(
    Plan plan,
    Topology topology,
    ImmutableMap<String, ProcessGroup> groups,
    ImmutableList<ImmutableDoubleArray> compute,
    ImmutableList<ImmutableList<Crossing>> transfers) {

  /**
   * {@return a plan on hosts}
   *
   * @throws CompileException when the hosts have other ranks, or when ranks that access each
   *     other's memory would be in different NVLink domains
   */
  public static Job of(Plan plan, Topology topology) {
    if (topology.ranks() != plan.worldSize()) {
      throw wrong(
          plan.rankPlans().getFirst(),
          "the hosts have %s, but the plan has %s"
              .formatted(Units.count(topology.ranks(), "rank"), plan.worldSize()));
    }
    int most = topology.placement().most();
    if (most > plan.target().gpus()) {
      throw wrong(
          plan.rankPlans().getFirst(),
          "a host has %s, but a host of %s has %s"
              .formatted(
                  Units.count(most, "rank"),
                  plan.target().name(),
                  Units.count(plan.target().gpus(), "GPU")));
    }
    var groups =
        plan.rankPlans().stream()
            .flatMap(rankPlan -> rankPlan.collectives().stream())
            .map(CollectivePlan::group)
            .distinct()
            .collect(ImmutableMap.toImmutableMap(name -> name, plan::group));
    var reaches =
        groups.values().stream()
            .collect(ImmutableMap.toImmutableMap(ProcessGroup::name, topology::reach));
    var costs = new CostModel(plan.target());
    return new Job(
        plan,
        topology,
        groups,
        plan.rankPlans().stream()
            .map(rankPlan -> compute(costs, rankPlan))
            .collect(ImmutableList.toImmutableList()),
        plan.rankPlans().stream()
            .map(
                rankPlan ->
                    IntStream.range(0, rankPlan.collectives().size())
                        .mapToObj(k -> transfer(costs, plan, rankPlan, k, topology, reaches))
                        .collect(ImmutableList.toImmutableList()))
            .collect(ImmutableList.toImmutableList()));
  }

  private static ImmutableDoubleArray compute(CostModel costs, RankPlan plan) {
    var work = new StepCosts(costs, plan);
    return ImmutableDoubleArray.copyOf(
        IntStream.range(0, plan.steps().size()).mapToDouble(work::computeMicros));
  }

  private static Crossing transfer(
      CostModel costs,
      Plan whole,
      RankPlan plan,
      int k,
      Topology topology,
      ImmutableMap<String, Reach> reaches) {
    var collective = plan.collectives().get(k);
    var reach = Objects.requireNonNull(reaches.get(collective.group()));
    var work = new StepCosts(costs, plan);
    long bytes = work.operandBytes(collective);
    if (!reach.isWithinDomain()) {
      if (collective.spec().reachesPeers()
          && OverNetwork.of(collective.kind(), collective.variant())
              .filter(needs -> needs.isMet(whole.target(), whole.multicast()))
              .isEmpty()) {
        throw wrong(
            plan,
            "'%s' runs as %s, for which the ranks of group '%s' must be in one NVLink domain; the"
                    .formatted(
                        plan.graph().ops().get(collective.op()).label(),
                        collective.variant().text(),
                        collective.group())
                + " hosts are "
                + topology.text());
      }
      return costs.crossing(collective.kind(), collective.variant(), bytes, reach);
    }
    double micros =
        costs.transferMicros(
            collective.kind(), collective.variant(), bytes, collective.operands().size(), reach);
    double maker = work.makerMicros(plan.steps().indexOf(new Step.Start(k)));
    return Crossing.within(costs.behindMicros(micros, maker));
  }

  private static CompileException wrong(RankPlan plan, String message) {
    return new CompileException(
        Diagnostic.error(
            DiagnosticCode.BAD_OPTION,
            plan.graph().span(),
            message,
            "plan the graph for these hosts"));
  }

  ProcessGroup group(int rank, int collective) {
    var name = plan.forRank(rank).collectives().get(collective).group();
    return Objects.requireNonNull(groups.get(name));
  }

  Crossing transfer(int rank, int collective) {
    return transfers.get(plan.planOfRank().get(rank)).get(collective);
  }
}
