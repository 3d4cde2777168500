package dev.symplan.planner.pass.place;

import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.select.RealizeOperands;

/** Gives the collectives that push through a workspace one ({@link Workspaces}). */
public final class ReserveWorkspaces extends GraphPass {
  public static final Fact<Workspaces> WORKSPACES = Fact.ofGraphs("workspaces");

  public ReserveWorkspaces() {
    super(
        "workspaces", facts(RealizeOperands.REALIZED, ScheduleSteps.SCHEDULES), facts(WORKSPACES));
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    var workspaces =
        Workspaces.of(
            state.get(RealizeOperands.REALIZED), state.get(ScheduleSteps.SCHEDULES), context);
    return state.with(WORKSPACES, workspaces);
  }
}
