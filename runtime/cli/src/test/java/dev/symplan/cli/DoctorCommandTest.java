package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.symplan.runtime.Backend;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class DoctorCommandTest {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();

  private int run(String... args) {
    return Main.run(
        args,
        new PrintStream(out, true, StandardCharsets.UTF_8),
        new PrintStream(err, true, StandardCharsets.UTF_8));
  }

  private static boolean hasGpus() {
    return Backend.ofName("cuda").orElseThrow().unavailable().isEmpty();
  }

  @Test
  void tellsOfEveryVariantWhereverItRuns() {
    assertThat(run("doctor")).isEqualTo(ExitCode.OK);
    assertThat(out.toString(StandardCharsets.UTF_8))
        .contains("backend cuda: ", "libnccl.so.2", "\none_shot ", "\nnccl_symm ");
    assertThat(err.size()).isZero();
  }

  @Test
  void writesJson() throws Exception {
    assertThat(run("doctor", "--format", "json")).isEqualTo(ExitCode.OK);
    var json = new ObjectMapper().readTree(out.toString(StandardCharsets.UTF_8));
    assertThat(json.get("usable").asBoolean()).isEqualTo(hasGpus());
    assertThat(json.get("problem") == null).isEqualTo(hasGpus());
    assertThat(json.get("gpus").isEmpty()).isEqualTo(!hasGpus());
  }

  @Test
  void exits3WhereGpusAreRequiredAndCannotBeUsed() {
    assertThat(run("doctor", "--require-gpu"))
        .isEqualTo(hasGpus() ? ExitCode.OK : ExitCode.NO_DEVICE);
    assertThat(out.size()).isPositive();
  }

  @Test
  void refusesAFormatThatThereIsNot() {
    assertThat(run("doctor", "--format", "xml")).isEqualTo(ExitCode.USAGE);
  }
}
