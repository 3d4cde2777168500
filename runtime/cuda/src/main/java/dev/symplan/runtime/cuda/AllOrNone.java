package dev.symplan.runtime.cuda;

import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.World;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.Optional;

/** Steps that count only if they succeed in all processes of a run. */
final class AllOrNone {
  private AllOrNone() {}

  /**
   * Does something that all ranks do at once, and hears from the others.
   *
   * @param what its name, the same on all ranks
   * @return the failure of the first rank that has one; empty if all succeeded
   * @throws RunException when the processes cannot go on together
   */
  static Optional<String> problem(World world, String what, Runnable step) {
    var own = "";
    try {
      step.run();
    } catch (RunException e) {
      if (world.failure().isPresent()) {
        throw e;
      }
      own = Objects.requireNonNull(e.getMessage());
    }
    return world.gather(what, own.getBytes(StandardCharsets.UTF_8)).stream()
        .filter(bytes -> bytes.length > 0)
        .map(bytes -> new String(bytes, StandardCharsets.UTF_8))
        .findFirst();
  }

  /**
   * Does something that all ranks do at once.
   *
   * @throws RunException when a rank fails
   */
  static void check(World world, String what, Runnable step) {
    problem(world, what, step)
        .ifPresent(
            problem -> {
              throw new RunException(problem);
            });
  }
}
