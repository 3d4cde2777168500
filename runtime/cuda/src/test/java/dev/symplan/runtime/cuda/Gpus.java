package dev.symplan.runtime.cuda;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.symplan.runtime.cuda.library.Libraries;

/** Conditions that tests set for this machine. */
final class Gpus {
  private static final int MAX_GPUS = 4;

  private Gpus() {}

  /** Skips the test where there are fewer, or they cannot be used. */
  static void require(int count) {
    var problem = Libraries.problem();
    assumeTrue(problem.isEmpty(), problem.orElse(""));
    assumeTrue(Devices.count() >= count, "there are fewer than %s GPUs".formatted(count));
  }

  /**
   * {@return how many ranks a test may have: from 2 to 4; skips the test where there is one GPU}
   */
  static int ranks() {
    require(2);
    return Math.min(MAX_GPUS, Devices.count());
  }
}
