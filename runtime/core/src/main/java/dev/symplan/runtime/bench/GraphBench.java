package dev.symplan.runtime.bench;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.DType;
import dev.symplan.planner.cost.Work;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Case;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.Timing;
import dev.symplan.runtime.Weights;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.profile.Profile;
import dev.symplan.runtime.profile.ProfiledStep;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Optional;
import java.util.function.BiConsumer;
import java.util.stream.IntStream;

/**
 * Measures a plan from end to end in the steady state, and each of its steps.
 *
 * @param data the source of the inputs; where empty, those that {@code weights} lacks are made up
 * @param measurements of each time
 * @param failed takes what could not be measured of the device, and why
 */
public record GraphBench(
    Backend backend,
    SessionOptions options,
    Plan plan,
    Optional<Case> data,
    Weights weights,
    int measurements,
    BiConsumer<String, RunException> failed) {

  /** The time of one measurement, unless a single run takes longer. */
  private static final double LONG_ENOUGH = 50_000;

  private static final int MAX_RUNS = 200;

  /** After these, nothing is made that later runs need. */
  private static final int FIRST_RUNS = 3;

  /** The number of runs directly before a profiled one. */
  private static final int RUNS_BEFORE = 2;

  /**
   * {@return the name of an input that is gone after the first run, so that a steady state does not
   * exist}
   */
  public static Optional<String> donated(Plan plan) {
    for (var rankPlan : plan.rankPlans()) {
      for (var input : rankPlan.graph().inputs()) {
        if (rankPlan.placement(input).exists()
            && !rankPlan.buffer(input).arena().isExternal()
            && rankPlan.buffer(input).last() < rankPlan.steps().size()) {
          return Optional.of(input.name());
        }
      }
    }
    return Optional.empty();
  }

  /**
   * Measures the device first, then the plan.
   *
   * @param product rows of the square matrices whose product is measured
   * @param copied bytes of the copy that is measured
   * @throws RunException when the plan cannot be run
   */
  public GraphTimes measure(long product, long copied) {
    // Before the first session, so that what libraries keep for all of them counts.
    var before = backend.memoryInUse(plan.worldSize());
    var sessions = new BenchSessions(backend, options);
    var roof =
        Roof.measure(
            sessions,
            plan.target(),
            plan.worldSize(),
            factors(),
            product,
            copied,
            measurements,
            failed);
    try (var session = sessions.open(plan, data, weights)) {
      for (int i = 0; i < FIRST_RUNS; i++) {
        session.run();
      }
      var after = backend.memoryInUse(plan.worldSize());
      var inUse = ImmutableList.<Long>builder();
      for (int rank = 0; rank < after.size(); rank++) {
        inUse.add(after.get(rank) - before.get(rank));
      }
      double one = Timing.ofHost(1, 1, session::run).median();
      int runs = (int) Math.clamp(LONG_ENOUGH / one, 1, MAX_RUNS);
      var host = Timing.ofHost(runs, measurements, session::run);
      Optional<Timing> device =
          after.isEmpty() ? Optional.empty() : Optional.of(session.time(runs, measurements));
      var profile = profile(session);
      return new GraphTimes(
          plan,
          roof,
          host,
          device,
          ProfiledStep.of(plan, profile),
          profile.method(),
          inUse.build());
    }
  }

  /** {@return the time of a run, of as many as take long enough to be measured} */
  public static Timing steady(Session session, int measurements) {
    double one = session.time(1, 1).median();
    return session.time((int) Math.clamp(LONG_ENOUGH / one, 1, MAX_RUNS), measurements);
  }

  /** {@return the types of what the plan's ops multiply} */
  private ImmutableSet<DType> factors() {
    return plan.rankPlans().stream()
        .flatMap(
            rankPlan ->
                IntStream.range(0, rankPlan.graph().ops().size())
                    .mapToObj(op -> Work.of(rankPlan, ImmutableIntArray.of(op))))
        .flatMap(work -> work.dtype().stream())
        .collect(ImmutableSet.toImmutableSet());
  }

  /** {@return the profile of the run of median length; another one before them does not count} */
  private Profile profile(Session session) {
    session.profile(RUNS_BEFORE);
    var profiles = new ArrayList<Profile>();
    for (int i = 0; i < measurements; i++) {
      profiles.add(session.profile(RUNS_BEFORE));
    }
    profiles.sort(Comparator.comparingDouble(GraphBench::length));
    return profiles.get(profiles.size() / 2);
  }

  private static double length(Profile profile) {
    double begin = Double.POSITIVE_INFINITY;
    double end = Double.NEGATIVE_INFINITY;
    for (var activity : profile.activities()) {
      begin = Math.min(begin, activity.begin());
      end = Math.max(end, activity.end());
    }
    return end - begin;
  }
}
