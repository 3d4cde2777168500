package dev.symplan.planner.pass.place;

import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.plan.OrderDecision.Figures;

/** Says what a graph takes on the rank that needs most, before it has offsets. */
public final class MeasureDraft extends GraphPass {
  public static final Fact<Figures> FIGURES = Fact.ofGraphs("figures");

  public MeasureDraft() {
    super(
        "measure",
        facts(ScheduleSteps.SCHEDULES, MergeStorages.LIFETIMES, ReserveWorkspaces.WORKSPACES),
        facts(FIGURES));
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    var lifetimes = state.get(MergeStorages.LIFETIMES);
    var schedules = state.get(ScheduleSteps.SCHEDULES);
    long peak = lifetimes.stream().mapToLong(Lifetimes::peakBytes).max().orElse(0);
    return state.with(
        FIGURES,
        new Figures(
            peak + state.get(ReserveWorkspaces.WORKSPACES).total(),
            schedules.stream().mapToDouble(Schedule::micros).max().orElse(0)));
  }
}
