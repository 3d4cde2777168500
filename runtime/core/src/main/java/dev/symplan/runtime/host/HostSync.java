package dev.symplan.runtime.host;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.diag.Units;
import dev.symplan.runtime.failure.RunException;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Synchronizes the threads of a session: barriers of groups, events between streams, the end of a
 * run. The first failure wakes all threads, and no thread waits forever.
 */
final class HostSync {

  /** Another thread failed: this one stops without a report of its own. */
  static final class Aborted extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Aborted() {
      super("aborted", null, false, false);
    }
  }

  /** The ranks that meet at one collective, as often as they like. */
  static final class Barrier {
    private final ImmutableIntArray members;
    private final boolean[] here;
    private int missing;
    private long generation;

    Barrier(ImmutableIntArray members) {
      this.members = members;
      this.here = new boolean[members.length()];
      this.missing = members.length();
    }

    private String missingRanks(IntFunction<String> activity) {
      return IntStream.range(0, here.length)
          .filter(i -> !here[i])
          .map(members::get)
          .mapToObj(rank -> "rank " + rank + ", which " + activity.apply(rank))
          .collect(Collectors.joining(", and for "));
    }
  }

  /** The time for which a thread polls memory of another process before it polls less often. */
  private static final long LOOK_NANOS = 50_000;

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final Duration timeout;
  private final IntFunction<String> activity;
  private final long[][] events;
  private @Nullable RunException failure;
  private int running;
  private long run;
  private long progress;

  /**
   * @param eventsOfRank the number of events of each rank
   * @param timeout how long a thread waits, and how long a run goes on without progress
   * @param activity a rank's activity, for messages
   */
  HostSync(int[] eventsOfRank, Duration timeout, IntFunction<String> activity) {
    this.timeout = timeout;
    this.activity = activity;
    this.events = Arrays.stream(eventsOfRank).mapToObj(long[]::new).toArray(long[][]::new);
  }

  /**
   * Begins a run of so many threads.
   *
   * @throws RunException when an earlier run failed
   */
  void startRun(int threads) {
    lock.lock();
    try {
      if (failure != null) {
        throw new RunException(
            "the session ended when a run failed: " + failure.getMessage(), failure);
      }
      run++;
      running = threads;
    } finally {
      lock.unlock();
    }
  }

  /** Ends one thread's part of the run. */
  void finish() {
    lock.lock();
    try {
      running--;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /**
   * Waits until all threads have finished, or one has failed, or none gets on.
   *
   * @param stuck names the ops that are being computed; empty if threads only wait, which ends by
   *     itself
   */
  void awaitEnd(Supplier<String> stuck) {
    lock.lock();
    try {
      long seen = progress;
      long left = timeout.toNanos();
      while (running > 0 && failure == null) {
        if (left <= 0) {
          var ops = stuck.get();
          if (seen == progress && !ops.isEmpty()) {
            abort(
                new RunException(
                    ops + ": not finished after more than " + Units.duration(timeout)));
            return;
          }
          seen = progress;
          left = timeout.toNanos();
        }
        left = changed.awaitNanos(left);
      }
    } catch (InterruptedException e) {
      abort(new RunException("the run was interrupted", e));
      Thread.currentThread().interrupt();
    } finally {
      lock.unlock();
    }
  }

  /** {@return whether all threads have stopped, after waiting for them at most {@code grace}} */
  boolean awaitStop(Duration grace) {
    boolean interrupted = false;
    lock.lock();
    try {
      long end = System.nanoTime() + grace.toNanos();
      while (running > 0) {
        long left = end - System.nanoTime();
        if (left <= 0) {
          return false;
        }
        try {
          changed.awaitNanos(left);
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
      return true;
    } finally {
      lock.unlock();
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
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

  /** Marks that a thread goes on with its next instruction. */
  void advance() {
    lock.lock();
    try {
      progress++;
      if (failure != null) {
        throw new Aborted();
      }
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

  void await(int rank, int event) {
    lock.lock();
    try {
      long wanted = run;
      waitUntil(
          () -> events[rank][event] >= wanted, () -> "its own rank, which " + activity.apply(rank));
    } finally {
      lock.unlock();
    }
  }

  /**
   * Waits until all ranks of a group are here.
   *
   * @param self this rank's position in the group
   */
  void meet(Barrier barrier, int self) {
    lock.lock();
    try {
      barrier.here[self] = true;
      if (--barrier.missing == 0) {
        Arrays.fill(barrier.here, false);
        barrier.missing = barrier.here.length;
        barrier.generation++;
        changed.signalAll();
        if (failure != null) {
          throw new Aborted();
        }
        return;
      }
      long generation = barrier.generation;
      waitUntil(() -> barrier.generation != generation, () -> barrier.missingRanks(activity));
    } finally {
      lock.unlock();
    }
  }

  /**
   * Waits for a change that another process makes in shared memory. Such a change wakes no thread.
   *
   * @param whom whose sign it is
   */
  void poll(BooleanSupplier done, Supplier<String> whom) {
    long begin = System.nanoTime();
    while (!done.getAsBoolean()) {
      long waited = System.nanoTime() - begin;
      if (waited > LOOK_NANOS) {
        LockSupport.parkNanos(LOOK_NANOS);
      } else {
        Thread.onSpinWait();
      }
      if (failure() != null) {
        throw new Aborted();
      }
      if (Thread.currentThread().isInterrupted()) {
        throw new RunException("was interrupted while it waited for " + whom.get());
      }
      if (waited > timeout.toNanos()) {
        throw new RunException(
            "waited more than %s for %s".formatted(Units.duration(timeout), whom.get()));
      }
    }
  }

  private void waitUntil(BooleanSupplier done, Supplier<String> whom) {
    long left = timeout.toNanos();
    while (!done.getAsBoolean()) {
      if (failure != null) {
        throw new Aborted();
      }
      if (left <= 0) {
        throw new RunException(
            "waited more than %s for %s".formatted(Units.duration(timeout), whom.get()));
      }
      try {
        left = changed.awaitNanos(left);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        if (failure != null) {
          throw new Aborted();
        }
        throw new RunException("was interrupted while it waited for " + whom.get(), e);
      }
    }
    if (failure != null) {
      throw new Aborted();
    }
  }
}
