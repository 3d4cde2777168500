package dev.symplan.cli;

import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.simulate.Job;
import dev.symplan.planner.simulate.Scenario;
import dev.symplan.planner.simulate.SimulatedStep;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.bench.GraphBench;
import dev.symplan.runtime.failure.RunException;
import java.util.Locale;

/** The time of a run in the steady state, beside the predicted one. */
final class SteadyRuns {
  private SteadyRuns() {}

  /**
   * @throws RunException when the plan cannot run many times with the same inputs
   */
  static void check(Plan plan) {
    GraphBench.donated(plan)
        .ifPresent(
            name -> {
              throw new RunException(
                  "--measurements: '%s' is donated, so its contents are lost after the first of many runs"
                      .formatted(name));
            });
  }

  /** Measures; all processes of a session do so together. */
  static String text(Plan plan, Session session, int measurements) {
    var time = GraphBench.steady(session, measurements);
    return String.format(
        Locale.ROOT,
        "a run takes %.1f µs (median of %s; %.1f to %.1f); %.1f µs predicted\n",
        time.median(),
        measurements,
        time.least(),
        time.most(),
        SimulatedStep.of(Scenario.of(Job.of(plan, plan.topology()))).micros());
  }
}
