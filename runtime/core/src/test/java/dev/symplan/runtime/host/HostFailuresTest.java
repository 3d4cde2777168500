package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.failure.RunException;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;

/** Ranks that fail or do not come: the others stop, and one error says why. */
@Isolated("counts the threads of all sessions")
@Timeout(60)
class HostFailuresTest {

  /** An op whose kernel a test chooses. */
  private static final String CUSTOM =
      """
      group g = [0, 1, 2, 3]
      op test_session::step(Tensor input) -> Tensor
      graph steps(x: f32[8]) {
        h: f32[8] = test_session::step(x)
        r = _c10d_functional::all_reduce(h, "sum", "g")
        o = _c10d_functional::wait_tensor(r)
        return o
      }
      """;

  @Test
  void timeoutsMayBeAsLongAsTheyLike() {
    var longest = Duration.ofSeconds(Long.MAX_VALUE);
    var options = SessionOptions.DEFAULT.withTimeout(longest);
    assertThat(options.timeout()).contains(SessionOptions.LONGEST_TIMEOUT);
    try (var session =
            Session.open(Programs.plan(HostSessionTest.SUM), new HostBackend(), options);
        var other = Session.open(Programs.plan(HostSessionTest.SUM), new HostBackend(longest))) {
      session.run();
      other.run();
    }
  }

  @Test
  void reportsOneErrorWhenAKernelFails() {
    var calls = new AtomicInteger();
    HostKernel kernel =
        call -> {
          call.result().copyFrom(call.tensor("input"));
          if (calls.incrementAndGet() == 3) {
            throw new IllegalArgumentException("index 9 is out of range");
          }
        };
    var before = HostSessionTest.liveThreads(Set.of());
    try (var _ = HostKernels.register("test_session::step", kernel);
        var session = Session.open(Programs.plan(CUSTOM), new HostBackend())) {
      assertThatThrownBy(session::run)
          .isInstanceOf(RunException.class)
          .hasMessageMatching(
              "rank \\d, test_session::step 'h' \\(test.graph:5\\): index 9 is out of range");
      assertThatThrownBy(session::run)
          .isInstanceOf(RunException.class)
          .hasMessageStartingWith("the session ended when a run failed: rank ");
    }
    assertThat(HostSessionTest.liveThreads(before)).isEmpty();
  }

  @Test
  void reportsErrorsOfTheMachineToo() {
    HostKernel kernel =
        call -> {
          throw new UnsatisfiedLinkError("no blas");
        };
    try (var _ = HostKernels.register("test_session::step", kernel);
        var session = Session.open(Programs.plan(CUSTOM), new HostBackend())) {
      assertThatThrownBy(session::run)
          .isInstanceOf(RunException.class)
          .hasMessageContaining("test_session::step 'h' (test.graph:5): no blas");
    }
  }

  @Test
  void givesUpWhenARankDoesNotArrive() {
    var calls = new AtomicInteger();
    HostKernel kernel =
        call -> {
          call.result().copyFrom(call.tensor("input"));
          if (calls.incrementAndGet() == 1) {
            sleep();
          }
        };
    var before = HostSessionTest.liveThreads(Set.of());
    try (var _ = HostKernels.register("test_session::step", kernel);
        var session =
            Session.open(Programs.plan(CUSTOM), new HostBackend(Duration.ofMillis(300)))) {
      assertThatThrownBy(session::run)
          .isInstanceOf(RunException.class)
          .hasMessageMatching(
              // Who runs out of timeout first depends on the machine's load.
              "rank \\d, all_reduce \\w+ 'r' \\(test.graph:6\\): waited more than 300 ms for"
                  + " rank \\d, which is at test_session::step 'h' \\(test.graph:5\\)"
                  + "|rank \\d, test_session::step 'h' \\(test.graph:5\\):"
                  + " not finished after more than 300 ms");
    }
    assertThat(HostSessionTest.liveThreads(before)).isEmpty();
  }

  @Test
  void givesUpWhenNobodyGetsOn() {
    HostKernel kernel = call -> sleep();
    try (var _ = HostKernels.register("test_session::step", kernel);
        var session =
            Session.open(Programs.plan(CUSTOM), new HostBackend(Duration.ofMillis(200)))) {
      assertThatThrownBy(session::run)
          .isInstanceOf(RunException.class)
          .hasMessageContaining("rank 0, test_session::step 'h' (test.graph:5) and rank 1")
          .hasMessageContaining("not finished after more than 200 ms");
    }
  }

  private static void sleep() {
    try {
      Thread.sleep(Duration.ofMinutes(1));
    } catch (InterruptedException e) {
      throw new IllegalStateException("interrupted", e);
    }
  }

  @Test
  void leavesAThreadBehindThatDoesNotStop() {
    HostKernel kernel =
        call -> {
          long end = System.nanoTime() + Duration.ofSeconds(4).toNanos();
          while (System.nanoTime() < end) {
            Thread.onSpinWait();
          }
          // The memory must still be there: this would end the process otherwise.
          call.result().copyFrom(call.tensor("input"));
        };
    long start = System.nanoTime();
    try (var _ = HostKernels.register("test_session::step", kernel)) {
      var session =
          Session.open(
              Programs.plan(CUSTOM.replace("[0, 1, 2, 3]", "[0]")),
              new HostBackend(Duration.ofMillis(100)));
      assertThatThrownBy(session::run).hasMessageContaining("not finished");
      session.close();
    }
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(4));
  }

  @Test
  void endsTheRunOfAnInterruptedCaller() {
    HostKernel kernel = call -> sleep();
    try (var _ = HostKernels.register("test_session::step", kernel);
        var session = Session.open(Programs.plan(CUSTOM), new HostBackend())) {
      Thread.currentThread().interrupt();
      assertThatThrownBy(session::run)
          .isInstanceOf(RunException.class)
          .hasMessageContaining("interrupted");
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  @Test
  void saysWhichOpCannotRun() {
    assertThatThrownBy(() -> Session.open(Programs.plan(CUSTOM), new HostBackend()))
        .isInstanceOf(RunException.class)
        .hasMessageContaining("test_session::step has no host implementation: 'h' (test.graph:5)");
  }
}
