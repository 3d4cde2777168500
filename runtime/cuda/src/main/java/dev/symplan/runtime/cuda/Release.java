package dev.symplan.runtime.cuda;

import dev.symplan.runtime.failure.RunException;
import org.jspecify.annotations.Nullable;

/** Freeing several things, each whether or not the others can be freed. */
final class Release {
  private Release() {}

  /**
   * Does all.
   *
   * @throws RunException for the first that failed
   */
  static void all(Iterable<Runnable> steps) {
    @Nullable RunException first = null;
    for (var step : steps) {
      try {
        step.run();
      } catch (RunException e) {
        first = first == null ? e : first;
      }
    }
    if (first != null) {
      throw first;
    }
  }
}
