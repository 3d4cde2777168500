package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.runtime.failure.RunException;
import java.util.ArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class GpuThreadTest {
  private static final int TASKS = 2_000;

  /** Longer than a thread looks out for work. */
  private static final long SLEEP_NANOS = 3_000_000;

  private final GpuThread thread = new GpuThread("test", () -> false);

  @AfterEach
  void close() {
    thread.close();
  }

  @Test
  void doesOneTaskAfterTheOther() {
    // Unguarded on purpose: what a task wrote must be there when it was waited for.
    var done = new ArrayList<Integer>();
    for (int i = 0; i < TASKS; i++) {
      int number = i;
      thread.start(() -> done.add(number));
      thread.join();
      assertThat(done).hasSize(i + 1);
    }
    assertThat(done).isEqualTo(IntStream.range(0, TASKS).boxed().toList());
  }

  @Test
  void eitherSideMaySleep() {
    var done = new ArrayList<Integer>();
    for (int i = 0; i < 20; i++) {
      int number = i;
      LockSupport.parkNanos(i % 2 == 0 ? SLEEP_NANOS : 1);
      thread.start(
          () -> {
            LockSupport.parkNanos(number % 3 == 0 ? SLEEP_NANOS : 1);
            done.add(number);
          });
      thread.join();
      assertThat(done).hasSize(i + 1);
    }
  }

  @Test
  void handsFailuresToWhoWaits() {
    thread.start(
        () -> {
          throw new RunException("rank 2: no");
        });
    assertThatThrownBy(thread::join).isInstanceOf(RunException.class).hasMessage("rank 2: no");
    thread.start(
        () -> {
          throw new AssertionError("broken");
        });
    assertThatThrownBy(thread::join)
        .isInstanceOf(RunException.class)
        .hasMessageContaining("broken");
    thread.start(() -> {});
    thread.join();
  }

  @Test
  void whoIsInterruptedNeedNotWait() {
    var goOn = new CountDownLatch(1);
    thread.start(
        () -> {
          try {
            goOn.await();
          } catch (InterruptedException e) {
            throw new IllegalStateException(e);
          }
        });
    Thread.currentThread().interrupt();
    assertThatThrownBy(thread::join)
        .isInstanceOf(RunException.class)
        .hasMessage("the run was interrupted");
    assertThat(Thread.interrupted()).isTrue();
    goOn.countDown();
    var done = new ArrayList<Integer>();
    thread.start(() -> done.add(1));
    thread.join();
    assertThat(done).containsExactly(1);
  }
}
