package dev.symplan.cli;

import static dev.symplan.cli.Ran.run;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.runtime.Backend;
import org.junit.jupiter.api.Test;

class DoctorCommandTest {
  private static boolean hasGpus() {
    return Backend.ofName("cuda").orElseThrow().unavailable().isEmpty();
  }

  @Test
  void tellsOfEveryVariantWhereverItRuns() {
    var result = run("doctor");
    assertThat(result.code()).isEqualTo(ExitCode.OK);
    assertThat(result.out())
        .contains("backend cuda: ", "libnccl.so.2", "\none_shot ", "\nnccl_symm ");
    assertThat(result.err()).isEmpty();
  }

  @Test
  void writesJson() throws Exception {
    var result = run("doctor", "--format", "json");
    assertThat(result.code()).isEqualTo(ExitCode.OK);
    var json = new ObjectMapper().readTree(result.out());
    assertThat(json.get("usable").asBoolean()).isEqualTo(hasGpus());
    assertThat(json.get("problem") == null).isEqualTo(hasGpus());
    assertThat(json.get("gpus").isEmpty()).isEqualTo(!hasGpus());
  }

  @Test
  void exits3WhereGpusAreRequiredAndCannotBeUsed() {
    var result = run("doctor", "--require-gpu");
    assertThat(result.code()).isEqualTo(hasGpus() ? ExitCode.OK : ExitCode.NO_DEVICE);
    assertThat(result.out()).isEqualTo(run("doctor").out());
    assertThat(result.out())
        .contains(
            "backend cuda: "
                + Backend.ofName("cuda")
                    .flatMap(Backend::unavailable)
                    .map("cannot be used: "::concat)
                    .orElse("ready")
                + "\n");
  }

  @Test
  void refusesAFormatThatThereIsNot() {
    var result = run("doctor", "--format", "xml");
    assertThat(result.code()).isEqualTo(ExitCode.USAGE);
    assertThat(result.err()).contains("--format", "'xml'", "text", "json");
    assertThat(result.out()).isEmpty();
  }

  @Test
  void comparesHostsOnlyUnderALauncher() {
    var result = run("doctor", "--world");
    assertThat(result.code()).isEqualTo(ExitCode.RUNTIME);
    assertThat(result.err()).startsWith("error: no launcher has started this process");
    assertThat(run("doctor", "--world", "--format", "json").code()).isEqualTo(ExitCode.USAGE);
  }
}
