package dev.symplan.planner.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.symplan.ir.diag.SourceFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Packs hard instances: one of our own, and those shared beside the repository. */
class SharedInstancesTest {
  private static final long CAPACITY = 1_048_576;

  /** Without gaps: each cut divides a rectangle in two, from the whole on. */
  @Test
  void solvesAnInstanceThatFillsItsCapacity() {
    var problem =
        PackingCsv.read(
                new SourceFile(
                    "filled.csv",
                    """
                    id,lower,upper,size
                    a,0,4,5
                    b,4,10,3
                    c,4,7,2
                    d,7,10,2
                    e,0,3,7
                    f,0,3,4
                    g,3,10,6
                    h,3,6,5
                    i,6,10,5
                    """))
            .problem();
    var packing = Packer.pack(problem, PackOptions.THOROUGH.withCapacity(16));
    PackingChecker.check(problem, packing);
    assertThat(packing.height()).isEqualTo(16);
  }

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
