package dev.symplan.runtime.host;

import dev.symplan.runtime.RunException;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Where the threads of a session wait for each other: barriers of groups, events between streams.
 * The first failure wakes everybody, and nobody waits for ever.
 */
final class Rendezvous {

  /** Another thread failed: this one stops without a report of its own. */
  static final class Aborted extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Aborted() {
      super("aborted", null, false, false);
    }
  }

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final Duration patience;
  private final long[][] events;
  private @Nullable RunException failure;
  private long run;

  /**
   * @param eventsOfRank the number of events of each rank
   */
  Rendezvous(int[] eventsOfRank, Duration patience) {
    this.patience = patience;
    this.events = Arrays.stream(eventsOfRank).mapToObj(long[]::new).toArray(long[][]::new);
  }

  /** The ranks that meet at one collective. */
  static final class Barrier {
    private final int size;
    private int waiting;
    private long generation;

    Barrier(int size) {
      this.size = size;
    }
  }

  void startRun() {
    lock.lock();
    try {
      run++;
    } finally {
      lock.unlock();
    }
  }

  /** {@return the first failure} */
  @Nullable RunException failure() {
    lock.lock();
    try {
      return failure;
    } finally {
      lock.unlock();
    }
  }

  /** Ends the session: all waits end, all later ones too. */
  void abort(RunException cause) {
    lock.lock();
    try {
      if (failure == null) {
        failure = cause;
      }
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  void record(int rank, int event) {
    lock.lock();
    try {
      events[rank][event] = run;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  void await(int rank, int event, String who) {
    lock.lock();
    try {
      long wanted = run;
      waitUntil(() -> events[rank][event] >= wanted, () -> who + " waited for its own stream");
    } finally {
      lock.unlock();
    }
  }

  void meet(Barrier barrier, String who) {
    lock.lock();
    try {
      if (++barrier.waiting == barrier.size) {
        barrier.waiting = 0;
        barrier.generation++;
        changed.signalAll();
        if (failure != null) {
          throw new Aborted();
        }
        return;
      }
      long generation = barrier.generation;
      waitUntil(
          () -> barrier.generation != generation,
          () ->
              "%s waited for %d of %d ranks"
                  .formatted(who, barrier.size - barrier.waiting, barrier.size));
    } finally {
      lock.unlock();
    }
  }

  private interface Message {
    String text();
  }

  private void waitUntil(BooleanSupplier done, Message message) {
    long left = patience.toNanos();
    while (!done.getAsBoolean()) {
      if (failure != null) {
        throw new Aborted();
      }
      if (left <= 0) {
        throw new RunException(
            "%s for more than %d s".formatted(message.text(), patience.toSeconds()));
      }
      try {
        left = changed.awaitNanos(left);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new RunException(message.text() + " and was interrupted", e);
      }
    }
    if (failure != null) {
      throw new Aborted();
    }
  }
}
