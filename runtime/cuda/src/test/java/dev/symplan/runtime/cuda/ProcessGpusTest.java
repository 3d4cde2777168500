package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Host;
import java.util.List;
import org.junit.jupiter.api.Test;

class ProcessGpusTest {
  private static final Host A = new Host("id of a", "a");
  private static final Host B = new Host("id of b", "b");

  @Test
  void hostsCountTheirGpusByThemselves() {
    Processes.requireSeparate(List.of("0:1", "0:2", "0:1", "0:2"), List.of(A, A, B, B));
  }

  @Test
  void twoRanksOfAHostNeedTwoGpus() {
    assertThatThrownBy(
            () -> Processes.requireSeparate(List.of("0:1", "0:2", "0:2"), List.of(A, B, B)))
        .isInstanceOf(RunException.class)
        .hasMessage("ranks 1 and 2 use the same GPU (0:2) of b: each needs a separate one");
  }

  /** Hosts may have the same name, as containers do. */
  @Test
  void namesOfHostsDoNotCount() {
    Processes.requireSeparate(
        List.of("0:1", "0:1"), List.of(new Host("x", "c"), new Host("y", "c")));
  }
}
