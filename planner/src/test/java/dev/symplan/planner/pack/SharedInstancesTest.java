package dev.symplan.planner.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.symplan.ir.diag.SourceFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Packs the instances that are shared beside the repository. */
class SharedInstancesTest {
  private static final long CAPACITY = 1_048_576;

  @ParameterizedTest
  @ValueSource(strings = {"A", "B", "C", "D", "E", "F"})
  void solvesMinimallocsInstancesWithinTheirCapacity(String name) throws IOException {
    var problem = read(name + "." + CAPACITY + ".csv");
    var packing = Packer.pack(problem, PackOptions.THOROUGH.withCapacity(CAPACITY));
    PackingChecker.check(problem, packing);
    assertThat(packing.height()).isLessThanOrEqualTo(CAPACITY);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "gemma2_2b_keras_jax",
        "hlo_llama31_8b_bf16_1x8",
        "hlo_mixtral_8x7b_bf16_1x8",
        "iopddl-A_max",
        "iopddl-P_max",
        "input.12"
      })
  void packsGraphsOfModelsAtMaxLive(String name) throws IOException {
    var problem = read(name + ".csv");
    var packing = Packer.pack(problem);
    PackingChecker.check(problem, packing);
    assertThat(packing.height()).isEqualTo(problem.lowerBound());
  }

  private static PackingProblem read(String name) throws IOException {
    var file = Path.of(System.getProperty("symplan.shared", "")).resolve("cases/packing/" + name);
    assumeTrue(Files.exists(file), () -> "not here: " + file);
    return PackingCsv.read(new SourceFile(name, Files.readString(file))).problem();
  }
}
