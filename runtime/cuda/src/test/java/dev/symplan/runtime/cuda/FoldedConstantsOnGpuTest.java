package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.runtime.check.FoldedPrograms;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What a session on GPUs computes once is right in every run. */
@Tag("gpu")
class FoldedConstantsOnGpuTest {
  private static final long SEED = Fuzz.seed(20_261_128_000L);
  private static final int PROGRAMS = Integer.getInteger("symplan.graphs", 30);

  @BeforeEach
  void requireGpus() {
    Gpus.require(2);
  }

  @Test
  void everyRunGivesWhatAFreshSessionGives() {
    int folded = 0;
    for (long seed = SEED; seed < SEED + PROGRAMS; seed++) {
      var program = FoldedPrograms.of(seed);
      folded += program.hasSetup() ? 1 : 0;
      program.check(new CudaBackend());
    }
    System.out.printf("%s of %s programs have a setup, from seed %s%n", folded, PROGRAMS, SEED);
    assertThat(folded).isGreaterThan(PROGRAMS / 3);
  }
}
