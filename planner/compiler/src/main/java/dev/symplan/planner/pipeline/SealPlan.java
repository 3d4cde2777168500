package dev.symplan.planner.pipeline;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.PlanState;
import dev.symplan.planner.pass.ProgramPass;
import dev.symplan.planner.pass.analysis.GraphChoice;
import dev.symplan.planner.pass.place.AllocateMemory;
import dev.symplan.planner.pass.place.ElideBarriers;
import dev.symplan.planner.pass.place.SymmetricArena;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.PlanDigest;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Rewrite.Action;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalLong;

/**
 * Puts the plan together, with the digest of what the ranks must agree on. The symmetric arena is
 * as large as the stage needs it that needs most.
 */
public final class SealPlan extends ProgramPass {
  public static final Fact<Plan> PLAN = Fact.lasting("plan");

  /** The decisions about rewrites, in the order in which a plan lists them. */
  private static final ImmutableList<Fact<ImmutableList<Rewrite>>> REWRITES =
      ImmutableList.of(
          RewriteSearch.LAYOUTS,
          RewriteSearch.BUCKETS,
          RewriteSearch.CHUNKS,
          RewriteSearch.SHARED_ROWS,
          RewriteSearch.HIERARCHIES,
          FitMemory.GIVEN_UP);

  SealPlan() {
    super(
        "seal",
        ImmutableSet.<Fact<?>>builder()
            .addAll(REWRITES)
            .add(
                FitMemory.LEAST,
                OrderSearch.ORDER,
                OrderSearch.FRONTIER,
                AllocateMemory.SYMMETRIC_ARENA,
                ElideBarriers.RANK_PLANS)
            .build(),
        facts(PLAN));
  }

  @Override
  public PlanState run(PlanState state, PassContext context) {
    VariantNames.check(state.graphs(), context);
    var plan = plan(state, context, ElideBarriers.RANK_PLANS);
    FitMemory.check(plan, context);
    return state.with(PLAN, plan);
  }

  /**
   * {@return the plan of a program}
   *
   * @param placed the plans by rank class
   */
  public static Plan plan(
      PlanState state, PassContext context, Fact<ImmutableList<RankPlan>> placed) {
    var stages = state.graphs();
    var program = context.program();
    var symmetric =
        SymmetricArena.ofStages(
            stages.stream().map(stage -> stage.get(AllocateMemory.SYMMETRIC_ARENA)).toList());
    var rankPlans =
        ImmutableList.copyOf(
            rankPlans(
                context,
                stages.stream()
                    .map(
                        stage ->
                            SymmetricArena.enlarged(
                                stage.get(placed),
                                stage.get(AllocateMemory.SYMMETRIC_ARENA),
                                symmetric))
                    .toList()));
    var groups =
        context.groups().used(program.groups(), rankPlans.stream().map(RankPlan::graph).toList());
    var topology = context.groups().topology();
    var planOfRank = GraphChoice.indices(context.graphOfRank());
    var slowest = slowest(stages);
    var rewrites =
        REWRITES.stream()
            .flatMap(fact -> stages.stream().flatMap(stage -> stage.get(fact).stream()))
            .collect(toImmutableList());
    boolean shares =
        rewrites.stream().anyMatch(rewrite -> rewrite.action() == Action.SEQUENCE_PARALLEL);
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
        rewrites,
        shares ? context.options().replicated() : ImmutableSet.of(),
        slowest.get(OrderSearch.ORDER),
        slowest.get(OrderSearch.FRONTIER),
        stages.size() == 1 ? slowest.get(FitMemory.LEAST) : OptionalLong.empty(),
        context.warnings());
  }

  /** The plans of all stages, in the order of the program's graphs. */
  private static List<RankPlan> rankPlans(
      PassContext context, List<ImmutableList<RankPlan>> ofStages) {
    var stages = context.stages().graphs();
    var graphs = stages.stream().flatMap(stage -> stage.stream().boxed()).toList();
    var plans = ofStages.stream().flatMap(List::stream).toList();
    var ordered = new ArrayList<RankPlan>(Collections.nCopies(plans.size(), plans.getFirst()));
    for (int i = 0; i < plans.size(); i++) {
      ordered.set(graphs.get(i), plans.get(i));
    }
    return ordered;
  }

  /** The others wait for it. */
  private static GraphState slowest(List<GraphState> stages) {
    return Collections.max(
        stages,
        Comparator.comparingDouble(stage -> stage.get(OrderSearch.ORDER).chosen().micros()));
  }
}
