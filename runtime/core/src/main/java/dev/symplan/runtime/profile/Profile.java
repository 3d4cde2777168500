package dev.symplan.runtime.profile;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.plan.StreamKind;

/**
 * The times of each instruction in one run.
 *
 * @param activities of each rank in the order of its instructions; one for each that does anything
 * @param method how the times were taken, and what that adds to them
 */
public record Profile(ImmutableList<Activity> activities, String method) {

  /**
   * One instruction of one rank.
   *
   * @param label the name of the instruction: its first result, or the op
   * @param kernel the kernel that really ran, as far as it is known
   * @param begin in microseconds, on a clock of all ranks
   * @param end in microseconds
   */
  public record Activity(
      int rank, StreamKind stream, String label, String kernel, double begin, double end) {
    public Activity {
      if (!(end >= begin)) {
        throw new IllegalArgumentException(
            "%s of rank %s ends at %s, before %s".formatted(label, rank, end, begin));
      }
    }

    /** {@return microseconds} */
    public double micros() {
      return end - begin;
    }
  }
}
