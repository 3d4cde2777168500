package dev.symplan.runtime.cuda;

import dev.symplan.runtime.failure.RunException;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The thread of one GPU. It does one task after the other for one caller, which waits for each.
 *
 * <p>To wake a thread takes longer than to launch a graph. So both sides look out for each other
 * for a while before they sleep: between runs that follow closely, neither does.
 */
final class GpuThread {
  private static final long SPIN_NANOS = 500_000;

  /** How often a caller that sleeps looks whether it should go on sleeping. */
  private static final long LOOK_NANOS = 50_000_000;

  private final Thread thread;

  /** The current task; the thread removes it when it is done. */
  private volatile @Nullable Runnable task;

  /** Read by the caller after {@link #task} is gone. */
  private @Nullable Throwable failure;

  private volatile boolean closed;
  private volatile boolean asleep;
  private volatile @Nullable Thread sleepingCaller;
  private final BooleanSupplier hasWork = () -> task != null || closed;
  private final BooleanSupplier isIdle = () -> task == null;
  private final BooleanSupplier isOverdue;

  /**
   * @param isOverdue whether the caller should wait no longer
   */
  GpuThread(String name, BooleanSupplier isOverdue) {
    this.isOverdue = isOverdue;
    this.thread = Thread.ofPlatform().daemon().name(name).unstarted(this::loop);
    thread.start();
  }

  /** Begins a task, once the one before is done. */
  void start(Runnable next) {
    awaitIdle();
    failure = null;
    task = next;
    if (asleep) {
      LockSupport.unpark(thread);
    }
  }

  /**
   * Waits for the task.
   *
   * @throws RunException when it failed, or is overdue, or the caller is interrupted: in these
   *     cases it goes on
   */
  void join() {
    awaitIdle();
    var cause = failure;
    failure = null;
    if (cause != null) {
      throw cause instanceof RunException run
          ? run
          : new RunException("a GPU's thread failed: " + cause, cause);
    }
  }

  /** {@return whether no task is in progress} */
  boolean isIdle() {
    return task == null;
  }

  /** Ends the thread when its task is done. */
  void close() {
    closed = true;
    LockSupport.unpark(thread);
  }

  private void awaitIdle() {
    if (!spin(isIdle)) {
      sleepingCaller = Thread.currentThread();
      while (task != null) {
        LockSupport.parkNanos(this, LOOK_NANOS);
        if (Thread.currentThread().isInterrupted()) {
          sleepingCaller = null;
          throw new RunException("the run was interrupted");
        }
        if (task != null && isOverdue.getAsBoolean()) {
          sleepingCaller = null;
          throw new RunException(thread.getName() + " does not come back");
        }
      }
      sleepingCaller = null;
    }
  }

  private static boolean spin(BooleanSupplier condition) {
    if (condition.getAsBoolean()) {
      return true;
    }
    long begin = System.nanoTime();
    while (System.nanoTime() - begin < SPIN_NANOS) {
      Thread.onSpinWait();
      if (condition.getAsBoolean()) {
        return true;
      }
    }
    return false;
  }

  private void loop() {
    while (true) {
      if (!spin(hasWork)) {
        asleep = true;
        while (!hasWork.getAsBoolean()) {
          LockSupport.park(this);
        }
        asleep = false;
      }
      var current = task;
      if (current == null) {
        return;
      }
      try {
        current.run();
      } catch (Throwable e) {
        failure = e;
      }
      task = null;
      var caller = sleepingCaller;
      if (caller != null) {
        LockSupport.unpark(caller);
      }
    }
  }
}
