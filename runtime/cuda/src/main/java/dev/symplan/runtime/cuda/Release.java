package dev.symplan.runtime.cuda;

import dev.symplan.runtime.failure.RunException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Freeing several things, each whether or not the others can be freed. */
final class Release {
  private Release() {}

  /**
   * Undoes what was done before something failed, the last first.
   *
   * @return the failure, with the first that happened here
   */
  static RuntimeException after(RuntimeException failure, List<Runnable> undo) {
    try {
      all(undo.reversed());
    } catch (RunException again) {
      failure.addSuppressed(again);
    }
    return failure;
  }

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
