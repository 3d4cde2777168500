package dev.symplan.runtime.cuda;

import dev.symplan.runtime.failure.Failure;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.World;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The end of a session before its time: the first failure, of whatever rank. It ends all waiting of
 * the host; what runs on GPUs has a moment to stop.
 */
final class SessionFailure {

  /** The time that GPUs get to stop after a failure. */
  private static final Duration GRACE = Duration.ofSeconds(2);

  private final Optional<World> world;
  private volatile @Nullable RunException first;
  private volatile long since;

  /**
   * @param world the other processes, which hear of a failure, and whose failures count
   */
  SessionFailure(Optional<World> world) {
    this.world = world;
  }

  /** Ends the session; the first failure counts. */
  synchronized void fail(RunException cause) {
    if (first == null) {
      since = System.nanoTime();
      first = cause;
      world.ifPresent(
          others -> others.fail(Failure.RUN_FAILED, Objects.requireNonNull(cause.getMessage())));
    }
  }

  /**
   * Does what may not come back, in this thread: after a while, the session ends without it.
   *
   * @param late the message of that failure
   */
  void limited(Duration most, String late, Runnable step) {
    var watch =
        Thread.ofVirtual()
            .start(
                () -> {
                  try {
                    Thread.sleep(most);
                    fail(new RunException(late));
                  } catch (InterruptedException _) {
                    // The step has come back.
                  }
                });
    try {
      step.run();
    } finally {
      watch.interrupt();
    }
  }

  /** {@return whether something has failed} */
  boolean hasBegun() {
    if (first != null) {
      return true;
    }
    var elsewhere = world.flatMap(World::failure);
    elsewhere.ifPresent(failure -> fail(new RunException(failure.text())));
    return elsewhere.isPresent();
  }

  /** {@return whether no rank needs to be waited for any more} */
  boolean isOverdue() {
    return hasBegun() && System.nanoTime() - since > GRACE.toNanos();
  }

  /** {@return the first failure} */
  Optional<RunException> cause() {
    return Optional.ofNullable(first);
  }
}
