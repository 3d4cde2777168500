package dev.symplan.runtime.profile;

import com.google.common.collect.ImmutableMap;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.planner.report.Fact;
import dev.symplan.planner.report.render.ChromeTrace;

/**
 * A profile as Chrome's trace events, which <a href="https://ui.perfetto.dev">Perfetto</a> shows: a
 * process for each rank, a thread for each stream.
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
                "method", new Fact.Text(profile.method())));
    var activities = profile.activities();
    for (int rank : activities.stream().mapToInt(Profile.Activity::rank).distinct().toArray()) {
      trace.process(rank, "rank " + rank);
      for (var stream : StreamKind.values()) {
        if (activities.stream().anyMatch(a -> a.rank() == rank && a.stream() == stream)) {
          trace.thread(rank, stream.ordinal(), stream.text());
        }
      }
    }
    double zero = activities.stream().mapToDouble(Profile.Activity::begin).min().orElse(0);
    for (var step : ProfiledStep.of(plan, profile)) {
      var activity = step.activity();
      trace.slice(
          activity.rank(),
          activity.stream().ordinal(),
          activity.label(),
          step.traffic().isPresent() ? "collective" : "compute",
          activity.begin() - zero,
          activity.micros(),
          facts(step));
    }
    return trace.toJson();
  }

  private static ImmutableMap<String, Fact> facts(ProfiledStep step) {
    var facts =
        ImmutableMap.<String, Fact>builder()
            .put("does", new Fact.Text(step.what()))
            .put("kernel", new Fact.Text(step.activity().kernel()))
            .put("predicted_us", new Fact.Real(step.predicted()));
    step.traffic()
        .ifPresent(
            traffic ->
                facts
                    .put("collective", new Fact.Whole(traffic.collective()))
                    .put("variant", new Fact.Text(traffic.variant()))
                    .put("bytes", new Fact.Whole(traffic.bytes()))
                    .put("gbps", new Fact.Real(traffic.rate()))
                    .put("waited_us", new Fact.Real(traffic.waited())));
    return facts.buildOrThrow();
  }
}
