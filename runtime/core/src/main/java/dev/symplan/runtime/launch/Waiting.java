package dev.symplan.runtime.launch;

import dev.symplan.runtime.failure.RunException;
import java.time.Duration;

/** Sleeping without checked exceptions. */
final class Waiting {
  private Waiting() {}

  /**
   * @throws RunException when interrupted
   */
  static void sleep(Duration time) {
    try {
      Thread.sleep(time);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new RunException("interrupted while waiting for other processes", e);
    }
  }
}
