package dev.symplan.runtime.bench;

import dev.symplan.runtime.profile.Profile.Activity;
import dev.symplan.runtime.profile.ProfiledStep;
import dev.symplan.runtime.profile.ProfiledStep.Traffic;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * The times of one rank's collectives in a run, in microseconds.
 *
 * @param total how long any of them ran
 * @param exposed how long any of them ran while no other step did
 * @param waited the part of their times, one by one, until the last rank of the group had begun
 */
public record Communication(double total, double exposed, double waited) {

  /** {@return the times of the steps of one rank} */
  static Communication of(List<ProfiledStep> steps) {
    var all = steps.stream().map(ProfiledStep::activity).toList();
    var others =
        steps.stream()
            .filter(step -> step.traffic().isEmpty())
            .map(ProfiledStep::activity)
            .toList();
    var own =
        steps.stream()
            .filter(step -> step.traffic().isPresent())
            .map(ProfiledStep::activity)
            .toList();
    return new Communication(
        covered(own),
        covered(all) - covered(others),
        steps.stream().flatMap(step -> step.traffic().stream()).mapToDouble(Traffic::waited).sum());
  }

  /** {@return how long any of these ran} */
  private static double covered(List<Activity> activities) {
    var sorted = new ArrayList<>(activities);
    sorted.sort(Comparator.comparingDouble(Activity::begin));
    double sum = 0;
    double end = Double.NEGATIVE_INFINITY;
    for (var activity : sorted) {
      if (activity.end() > end) {
        sum += activity.end() - Math.max(end, activity.begin());
        end = activity.end();
      }
    }
    return sum;
  }
}
