package dev.symplan.planner.pass.place;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.select.RealizeOperands;

/** Orders the work of each rank class in steps on streams ({@link Schedule}). */
public final class ScheduleSteps extends GraphPass {
  /** By rank class. */
  public static final Fact<ImmutableList<Schedule>> SCHEDULES = Fact.ofGraphs("schedules");

  public ScheduleSteps() {
    super("schedule", facts(RealizeOperands.REALIZED), facts(SCHEDULES));
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    return state.with(
        SCHEDULES,
        state.get(RealizeOperands.REALIZED).stream()
            .map(graph -> Schedule.of(graph, context))
            .collect(toImmutableList()));
  }
}
