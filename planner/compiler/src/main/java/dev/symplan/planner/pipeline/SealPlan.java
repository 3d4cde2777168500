package dev.symplan.planner.pipeline;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.PlanState;
import dev.symplan.planner.pass.ProgramPass;
import dev.symplan.planner.pass.analysis.GraphChoice;
import dev.symplan.planner.pass.place.AllocateMemory;
import dev.symplan.planner.pass.place.ElideBarriers;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.PlanDigest;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Rewrite;

/** Puts the plan together, with the digest of what the ranks must agree on. */
public final class SealPlan extends ProgramPass {
  public static final Fact<Plan> PLAN = Fact.lasting("plan");

  SealPlan() {
    super(
        "seal",
        facts(
            RewriteSearch.LAYOUTS,
            RewriteSearch.BUCKETS,
            RewriteSearch.CHUNKS,
            RewriteSearch.HIERARCHIES,
            FitMemory.RECOMPUTED,
            OrderSearch.ORDER,
            OrderSearch.FRONTIER,
            AllocateMemory.SYMMETRIC_ARENA,
            ElideBarriers.RANK_PLANS),
        facts(PLAN));
  }

  @Override
  public PlanState run(PlanState state, PassContext context) {
    return state.with(PLAN, plan(state, context, state.graph().get(ElideBarriers.RANK_PLANS)));
  }

  /**
   * {@return the plan of the state's graph}
   *
   * @param rankPlans by rank class
   */
  public static Plan plan(PlanState state, PassContext context, ImmutableList<RankPlan> rankPlans) {
    var graph = state.graph();
    var program = context.program();
    var symmetric = graph.get(AllocateMemory.SYMMETRIC_ARENA);
    var groups =
        context.groups().used(program.groups(), rankPlans.stream().map(RankPlan::graph).toList());
    var topology = context.groups().topology();
    var planOfRank = GraphChoice.indices(context.graphOfRank());
    return new Plan(
        context.graphOfRank().getFirst().name(),
        context.target(),
        topology,
        context.options().multicast(),
        groups,
        program.declarations(),
        rankPlans,
        planOfRank,
        symmetric,
        PlanDigest.of(
            topology.unlike(context.target()), symmetric.bytes(), groups, rankPlans, planOfRank),
        ImmutableList.<Rewrite>builder()
            .addAll(graph.get(RewriteSearch.LAYOUTS))
            .addAll(graph.get(RewriteSearch.BUCKETS))
            .addAll(graph.get(RewriteSearch.CHUNKS))
            .addAll(graph.get(RewriteSearch.HIERARCHIES))
            .addAll(graph.get(FitMemory.RECOMPUTED))
            .build(),
        graph.get(OrderSearch.ORDER),
        graph.get(OrderSearch.FRONTIER),
        context.warnings());
  }
}
