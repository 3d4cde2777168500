package dev.symplan.cli;

import static dev.symplan.cli.Ran.run;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CalibrateCommandTest {
  private static final Path ROOT = Path.of(System.getProperty("symplan.root", "../.."));
  private static final Path SAMPLE = ROOT.resolve("samples/tp_mlp.graph");

  @TempDir private Path folder;

  @Test
  void fitsATargetThatPlansAreMadeFor() throws IOException {
    var points = folder.resolve("points.csv");
    var text = new StringBuilder("kind,variant,dtype,bytes,ranks,micros\n");
    for (int bytes = 1 << 12; bytes <= 1 << 20; bytes *= 2) {
      text.append("all_reduce,nccl,bf16,%s,4,%s\n".formatted(bytes, 5));
    }
    Files.writeString(points, text);
    var target = folder.resolve("lab.json");
    var fitted = run("calibrate", points, "-o", target, "--base", "h200x8");
    assertThat(fitted.code()).as(fitted.said()).isZero();
    assertThat(fitted.said())
        .contains("all_reduce  nccl     4      9", "no size was measured in several variants")
        .doesNotContain("0 of 0");

    var plan = folder.resolve("plan.json");
    assertThat(run("compile", SAMPLE, "--target", target, "-o", plan).code()).isZero();
    Files.delete(target);
    assertThat(run("dump", plan).said()).contains("target lab", "r all_reduce  nccl");
    assertThat(run("explain", plan, "r").said()).containsPattern("one_shot +[0-9.]+ µs, estimated");
  }

  @Test
  void saysWhereAPointOrTargetIsWrong() throws IOException {
    var points = Files.writeString(folder.resolve("points.csv"), "kind,micros\nlaunch,fast\n");
    var result = run("calibrate", points);
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.said())
        .contains("points.csv:2:8: error[bad-points]: 'fast' is not a valid micros");

    var target = Files.writeString(folder.resolve("lab.json"), "{\"format\": 1}");
    result = run("dump", SAMPLE, "--target", target);
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.said()).contains("lab.json:1:12: error[bad-target]: this is not a string");

    result = run("dump", SAMPLE, "--target", folder.resolve("none.json"));
    assertThat(result.code()).isEqualTo(2);
    assertThat(result.said()).contains("neither a target nor a file; targets are h200x4");
  }
}
