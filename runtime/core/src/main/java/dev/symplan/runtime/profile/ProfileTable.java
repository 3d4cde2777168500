package dev.symplan.runtime.profile;

import dev.symplan.ir.diag.Units;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.planner.report.Table;
import dev.symplan.runtime.profile.ProfiledStep.Traffic;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;

/** One rank's steps, predicted and measured. */
public final class ProfileTable {
  private ProfileTable() {}

  /**
   * {@return a row for each step of the first rank that was profiled, and a sum for each stream}
   *
   * @throws IllegalArgumentException when the profile is of another plan
   */
  public static String print(Plan plan, Profile profile) {
    if (profile.activities().isEmpty()) {
      return "nothing ran\n";
    }
    int rank = profile.activities().getFirst().rank();
    var steps =
        ProfiledStep.of(plan, profile).stream()
            .filter(step -> step.activity().rank() == rank)
            .toList();
    var table =
        new Table(
            "step",
            "does",
            "variant",
            "stream",
            "predicted",
            "measured",
            "size",
            "GB/s",
            "waited",
            "kernel");
    for (var step : steps) {
      var activity = step.activity();
      table.row(
          activity.label(),
          step.what(),
          step.traffic().map(Traffic::variant).orElse(""),
          activity.stream().text(),
          number(step.predicted()),
          number(activity.micros()),
          step.traffic().map(t -> Units.bytes(t.bytes())).orElse(""),
          step.traffic().map(t -> number(t.rate())).orElse(""),
          step.traffic().map(t -> number(t.waited())).orElse(""),
          activity.kernel());
    }
    return "steps of rank %s, µs; %s\n%s\n%s"
        .formatted(rank, profile.method(), table.render(), sums(steps));
  }

  private record Sum(int steps, double predicted, double measured, double waited) {
    static Sum of(ProfiledStep step) {
      return new Sum(
          1,
          step.predicted(),
          step.activity().micros(),
          step.traffic().map(Traffic::waited).orElse(0.0));
    }

    Sum plus(Sum other) {
      return new Sum(
          steps + other.steps,
          predicted + other.predicted,
          measured + other.measured,
          waited + other.waited);
    }
  }

  private static String sums(List<ProfiledStep> steps) {
    var busy = new EnumMap<StreamKind, Sum>(StreamKind.class);
    double begin = Double.POSITIVE_INFINITY;
    double end = Double.NEGATIVE_INFINITY;
    for (var step : steps) {
      var activity = step.activity();
      busy.merge(activity.stream(), Sum.of(step), Sum::plus);
      begin = Math.min(begin, activity.begin());
      end = Math.max(end, activity.end());
    }
    var table = new Table("stream", "steps", "predicted", "measured", "waited for peers");
    busy.forEach(
        (stream, sum) ->
            table.row(
                stream.text(),
                Integer.toString(sum.steps()),
                number(sum.predicted()),
                number(sum.measured()),
                number(sum.waited())));
    return table.render()
        + "from the first step's begin to the last one's end: %s µs\n"
            .formatted(number(end - begin));
  }

  private static String number(double value) {
    return String.format(Locale.ROOT, "%.1f", value);
  }
}
