package dev.symplan.planner.pass.place;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.plan.RankPlan;

/** Leaves out the barriers that others make redundant ({@link BarrierElision}). */
public final class ElideBarriers extends GraphPass {
  /** By rank class, with the barriers that are left. */
  public static final Fact<ImmutableList<RankPlan>> RANK_PLANS = Fact.ofGraphs("rank plans");

  public ElideBarriers() {
    super("elide_barriers", facts(AllocateMemory.PLACED), facts(RANK_PLANS));
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    return state.with(RANK_PLANS, BarrierElision.run(state.get(AllocateMemory.PLACED)));
  }
}
