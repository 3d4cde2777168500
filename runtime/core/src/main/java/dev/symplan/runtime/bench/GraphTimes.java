package dev.symplan.runtime.bench;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Timing;
import dev.symplan.runtime.profile.ProfiledStep;
import java.util.Comparator;
import java.util.Optional;

/**
 * The measurements of a plan.
 *
 * @param host a run from call to return, by the host's clock
 * @param device a run by the slowest device's clock; empty if the backend has no devices
 * @param steps of all ranks in a run of median length
 * @param method how the times of steps were taken, and what that adds to them
 * @param inUse by rank, the bytes of device memory that the session takes after its first runs, by
 *     the driver's count; empty if the backend has no devices
 */
public record GraphTimes(
    Plan plan,
    Roof roof,
    Timing host,
    Optional<Timing> device,
    ImmutableList<ProfiledStep> steps,
    String method,
    ImmutableList<Long> inUse) {

  /** {@return the steps of one rank, in the order of its plan} */
  public ImmutableList<ProfiledStep> steps(int rank) {
    return steps.stream()
        .filter(step -> step.activity().rank() == rank)
        .sorted(Comparator.comparingInt(ProfiledStep::index))
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return the times of one rank's collectives} */
  public Communication communication(int rank) {
    return Communication.of(steps(rank));
  }
}
