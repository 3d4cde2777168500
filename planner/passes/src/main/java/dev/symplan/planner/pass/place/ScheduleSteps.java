package dev.symplan.planner.pass.place;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.select.AttachEpilogues;
import dev.symplan.planner.pass.select.RealizeOperands;
import dev.symplan.planner.plan.StreamKind;

/** Orders the work of each rank class in steps on streams ({@link Schedule}). */
public final class ScheduleSteps extends GraphPass {
  /** By rank class. */
  public static final Fact<ImmutableList<Schedule>> SCHEDULES = Fact.ofGraphs("schedules");

  /** Collectives that run alone although compute could hide them, if a search found such. */
  public static final Fact<ImmutableSet<Integer>> APART = Fact.ofGraphs("collectives kept apart");

  public ScheduleSteps() {
    super("schedule", facts(RealizeOperands.REALIZED, AttachEpilogues.EPILOGUES), facts(SCHEDULES));
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    var apart = state.facts().find(APART).orElse(ImmutableSet.of());
    return state.with(
        SCHEDULES,
        state.get(RealizeOperands.REALIZED).stream()
            .map(graph -> Schedule.of(graph, apart, state.get(AttachEpilogues.EPILOGUES), context))
            .collect(toImmutableList()));
  }

  /**
   * {@return the collectives that run beside compute at a step at which more than so many bytes are
   * live on a rank}
   *
   * @param state one that has been measured
   */
  public static ImmutableSet<Integer> inFlightAbove(long bytes, GraphState state) {
    long own = bytes - state.get(ReserveWorkspaces.WORKSPACES).total();
    var found = ImmutableSet.<Integer>builder();
    for (int c = 0; c < state.classes().size(); c++) {
      var schedule = state.get(SCHEDULES).get(c);
      var above = state.get(MergeStorages.LIFETIMES).get(c).stepsAbove(own);
      for (int k = 0; k < schedule.streams().size(); k++) {
        int next = above.nextSetBit(schedule.startStep().get(k));
        if (schedule.streams().get(k) != StreamKind.COMPUTE
            && next >= 0
            && next <= schedule.endStep().get(k)) {
          found.add(k);
        }
      }
    }
    return found.build();
  }
}
