package dev.symplan.planner.calibrate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.symplan.ir.diag.CompileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PyTorchTimesTest {
  private static final String HEADER =
      "program,graphs,mode,ranks,micros,min_us,max_us,peak_allocated,peak_reserved,in_use,gpu,date\n";

  private static final String FIRST =
      "mlp_tp2,1,default,2,2795.10,2700.00,2800.50,100,200,300,NVIDIA H200,2026-11-22\n";

  private static final String SECOND =
      "mlp_tp2,1,max-autotune,2,644.10,640.00,650.00,110,210,310,NVIDIA H200,2026-11-22\n";

  @TempDir private Path folder;

  private PyTorchTimes read(String text) throws IOException {
    return PyTorchTimes.read(Files.writeString(folder.resolve("torch.csv"), text));
  }

  private static String message(CompileException wrong) {
    return wrong.diagnostics().getFirst().render();
  }

  @Test
  void rowsOfSeveralProcessesAreReadTogether() throws IOException {
    var times = read("# first\n" + HEADER + FIRST + "# second\n" + SECOND);
    assertThat(times.comments()).containsExactly("first", "second");
    assertThat(times.rows())
        .containsExactly(
            new PyTorchTimes.Row(
                "mlp_tp2",
                1,
                "default",
                2,
                2795.1,
                2700,
                2800.5,
                100,
                200,
                300,
                "NVIDIA H200",
                "2026-11-22"),
            new PyTorchTimes.Row(
                "mlp_tp2",
                1,
                "max-autotune",
                2,
                644.1,
                640,
                650,
                110,
                210,
                310,
                "NVIDIA H200",
                "2026-11-22"));
  }

  @Test
  void theProgramIsFoundByItsNameOrAlone() throws IOException {
    var one = read(HEADER + FIRST + SECOND);
    assertThat(one.of("mlp_tp2", 2)).hasSize(2);
    assertThat(one.of("anything", 2)).hasSize(2);
    var two = read(HEADER + FIRST + SECOND.replace("mlp_tp2", "llama_tp2"));
    assertThat(two.of("llama_tp2", 2)).singleElement().extracting("mode").isEqualTo("max-autotune");
    var wrong = catchThrowableOfType(CompileException.class, () -> two.of("mlp_tp4", 2));
    assertThat(message(wrong))
        .contains("torch.csv", "the file has no times of 'mlp_tp4'", "of mlp_tp2, llama_tp2");
  }

  @Test
  void timesOfAnotherNumberOfRanksAreRefused() throws IOException {
    var times = read(HEADER + FIRST);
    var wrong = catchThrowableOfType(CompileException.class, () -> times.of("mlp_tp2", 4));
    assertThat(message(wrong)).contains("are for 2 ranks, but the plan is for 4");
  }

  @Test
  void saysWhichFieldIsWrong() {
    var wrong =
        catchThrowableOfType(
            CompileException.class, () -> read(HEADER + FIRST.replace("2795.10", "-1")));
    assertThat(message(wrong)).contains("torch.csv:2:21", "'-1' is not a valid micros");
    var other =
        catchThrowableOfType(CompileException.class, () -> read("kind,micros\nlaunch,1.0\n"));
    assertThat(message(other)).contains("unknown column 'kind'");
  }
}
