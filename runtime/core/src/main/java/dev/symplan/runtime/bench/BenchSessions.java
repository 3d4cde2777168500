package dev.symplan.runtime.bench;

import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Case;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.Timing;
import dev.symplan.runtime.Weights;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.tensor.InputNeeds;
import dev.symplan.runtime.tensor.SeededInputs;
import java.util.Optional;

/** Opens sessions to be measured, with inputs. */
record BenchSessions(Backend backend, SessionOptions options) {
  private static final long SEED = 1;

  /**
   * {@return a session with made-up inputs}
   *
   * @throws RunException as {@link Session#open}
   */
  Session open(Plan plan) {
    return open(plan, Optional.empty(), Weights.NONE);
  }

  /**
   * {@return a session}
   *
   * @param data the source of the inputs; where empty, those that {@code weights} lacks are made up
   * @throws RunException as {@link Session#open}
   */
  Session open(Plan plan, Optional<Case> data, Weights weights) {
    var session = Session.open(plan, backend, options);
    try {
      if (data.isPresent()) {
        data.get().fillInputs(session, plan, weights);
      } else {
        makeUp(session, plan, weights);
      }
      return session;
    } catch (RuntimeException | Error e) {
      session.close();
      throw e;
    }
  }

  private static void makeUp(Session session, Plan plan, Weights weights) {
    for (int rank : session.localRanks()) {
      var graph = plan.forRank(rank).graph();
      for (int i = 0; i < session.inputNames(rank).size(); i++) {
        if (weights.fill(session, plan, rank, i)) {
          continue;
        }
        var tensor = session.input(rank, i);
        if (tensor.isPresent()) {
          SeededInputs.fillRepeating(
              tensor.get(),
              SEED,
              rank,
              session.inputNames(rank).get(i),
              InputNeeds.of(graph, graph.inputs().get(i)));
        }
      }
    }
  }

  /**
   * {@return the time of a plan with made-up inputs, in a session of its own}
   *
   * @throws RunException as {@link Session#time}
   */
  Timing time(Plan plan, int runs, int measurements) {
    try (var session = open(plan)) {
      session.run();
      return session.time(runs, measurements);
    }
  }
}
