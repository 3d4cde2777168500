package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.runtime.failure.RunException;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

class SessionFailureTest {
  private final SessionFailure ending = new SessionFailure(Optional.empty());

  @Test
  void nothingEndsByItself() {
    assertThat(ending.hasBegun()).isFalse();
    assertThat(ending.isOverdue()).isFalse();
    assertThat(ending.cause()).isEmpty();
  }

  @Test
  void theFirstFailureCounts() {
    var first = new RunException("first");
    ending.fail(first);
    ending.fail(new RunException("second"));
    assertThat(ending.hasBegun()).isTrue();
    assertThat(ending.cause()).containsSame(first);
  }

  @Test
  void gpusHaveAMomentToStop() throws Exception {
    ending.fail(new RunException("first"));
    assertThat(ending.isOverdue()).isFalse();
    Thread.sleep(2100);
    assertThat(ending.isOverdue()).isTrue();
  }

  @Test
  void aStepThatComesBackEndsNothing() {
    var done = new AtomicBoolean();
    ending.limited(Duration.ofMinutes(1), "late", () -> done.set(true));
    assertThat(done).isTrue();
    assertThat(ending.hasBegun()).isFalse();
  }

  @Test
  void aStepThatDoesNotComeBackEndsTheSession() {
    ending.limited(
        Duration.ofMillis(10),
        "late",
        () -> {
          while (!ending.hasBegun()) {
            Thread.onSpinWait();
          }
        });
    assertThat(ending.cause().orElseThrow()).hasMessage("late");
  }
}
