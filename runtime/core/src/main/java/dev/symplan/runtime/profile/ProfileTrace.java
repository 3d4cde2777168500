package dev.symplan.runtime.profile;

import com.google.common.collect.ImmutableMap;
import dev.symplan.planner.Plan;
import dev.symplan.planner.Stream;
import dev.symplan.planner.report.ChromeTrace;
import dev.symplan.planner.report.Fact;

/**
 * A profile as Chrome's trace events, which <a href="https://ui.perfetto.dev">Perfetto</a> shows: a
 * process for each rank, a thread for each stream, as in the traces of predicted schedules.
 */
public final class ProfileTrace {
  private ProfileTrace() {}

  /**
   * {@return the JSON}
   *
   * @throws IllegalArgumentException when the profile is of another plan
   */
  public static String toJson(Plan plan, Profile profile) {
    var trace =
        new ChromeTrace(
            ImmutableMap.of(
                "plan", new Fact.Text(plan.name()),
                "target", new Fact.Text(plan.target().name()),
                "digest", new Fact.Text(plan.digest()),
                "method", new Fact.Text(profile.method())));
    names(profile, trace);
    double begin =
        profile.activities().stream().mapToDouble(Profile.Activity::begin).min().orElse(0);
    for (var step : ProfiledStep.of(plan, profile)) {
      var activity = step.activity();
      trace.slice(
          activity.rank(),
          activity.stream().ordinal(),
          activity.label(),
          step.traffic().isPresent() ? "collective" : "compute",
          activity.begin() - begin,
          activity.micros(),
          args(step));
    }
    return trace.toJson();
  }

  private static void names(Profile profile, ChromeTrace trace) {
    for (int rank :
        profile.activities().stream().mapToInt(Profile.Activity::rank).distinct().toArray()) {
      trace.process(rank, "rank " + rank);
      for (var stream : Stream.values()) {
        if (profile.activities().stream().anyMatch(a -> a.rank() == rank && a.stream() == stream)) {
          trace.thread(rank, stream.ordinal(), stream.text());
        }
      }
    }
  }

  private static ImmutableMap<String, Fact> args(ProfiledStep step) {
    var args = ImmutableMap.<String, Fact>builder();
    args.put("does", new Fact.Text(step.what()));
    args.put("kernel", new Fact.Text(step.activity().kernel()));
    args.put("predicted_us", new Fact.Real(step.predicted()));
    step.traffic()
        .ifPresent(
            traffic -> {
              args.put("collective", new Fact.Whole(traffic.collective()));
              args.put("variant", new Fact.Text(traffic.variant()));
              args.put("bytes", new Fact.Whole(traffic.bytes()));
              args.put("gbps", new Fact.Real(traffic.rate()));
              args.put("waited_us", new Fact.Real(traffic.waited()));
            });
    return args.buildOrThrow();
  }
}
