package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.ReadAhead;
import dev.symplan.planner.machine.Variant;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.tensor.SeededInputs;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Kernels that read ahead for the products behind them give the bits of those that do not. */
@Tag("gpu")
class ReadAheadOnGpuTest {
  private static final int RANKS = 2;
  private static final int RUNS = 40;

  @ParameterizedTest
  @CsvSource({
    "ONE_SHOT, 5",
    "ONE_SHOT, 64",
    "ONE_SHOT_PUSH, 5",
    "ONE_SHOT_PUSH, 16",
    "ONE_SHOT_PUSH, 64",
    "TWO_SHOT, 16",
    "TWO_SHOT_PUSH, 16"
  })
  void givesTheSameBits(Variant variant, int tokens) {
    var executable = Lowering.lower(GroupProgram.normsAndProducts(RANKS, tokens, variant));
    var lowered = DeviceLowering.lower(executable);
    assertThat(ReadAhead.in(lowered, executable)).isNotEqualTo(lowered);
    Gpus.require(RANKS);
    var options = SessionOptions.DEFAULT.withTimeout(Duration.ofSeconds(10));
    try (var with = CudaSession.open(executable, options);
        var without = CudaSession.open(executable, options.withDependentLaunches(false))) {
      for (int run = 0; run < RUNS; run++) {
        if (run % 20 == 0) {
          for (var session : List.of(with, without)) {
            for (int rank = 0; rank < RANKS; rank++) {
              for (int i = 0; i < session.inputNames().size(); i++) {
                SeededInputs.fill(session.input(rank, i).orElseThrow(), run, rank, "x" + i);
              }
            }
          }
          without.run();
        }
        with.run();
        Bits.assertSame(with, without, "run " + run);
      }
    }
  }
}
