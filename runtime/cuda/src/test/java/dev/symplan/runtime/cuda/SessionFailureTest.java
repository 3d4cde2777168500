package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.runtime.failure.RunException;
import java.util.Optional;
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
}
