package dev.symplan.codegen.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.io.Resources;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which ops have CUDA implementations, and what can be run with those. */
class CoverageTest {
  private static final Path ROOT = Path.of(System.getProperty("symplan.root"));
  private static final Path SHARED =
      Path.of(System.getProperty("symplan.shared", "../shared")).resolve("cases");

  private static ImmutableList<DeviceProgram> lower(Path file) {
    return DeviceLowering.lower(
        Lowering.lower(
            Compiler.forTarget(Target.H200_X4).with(CompileOptions.DEFAULT).compile(file)));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "collectives.graph",
        "data_parallel.graph",
        "fsdp_bucket.graph",
        "fsdp_layer.graph",
        "moe.graph",
        "sp_block.graph",
        "tp_mlp.graph",
        "two_groups.graph",
        "uneven.graph",
        "cases/allreduce_relu",
        "cases/complex_rotary",
        "cases/fsdp_mlp_train_bwd",
        "cases/fsdp_mlp_train_fwd",
        "cases/mesh_2d",
        "cases/moe",
        "cases/reduce_ops",
        "cases/sp_mlp",
        "cases/tp_mlp_bf16",
        "cases/tp_mlp_f32"
      })
  void samplesCanRun(String sample) {
    assertThat(lower(ROOT.resolve("samples").resolve(sample))).isNotEmpty();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "numeric/llama_tiny",
        "numeric/llama_tiny_train_fwd",
        "numeric/llama_tiny_train_bwd",
        "e2e/mlp8_tok16_tp4.fx.txt",
        "e2e/mlp8_tok128_tp4.fx.txt",
        "e2e/mlp8_tok2048_tp4.fx.txt",
        "e2e/llama4l_b1_s2048_tp4.fx.txt"
      })
  void casesCanRun(String name) {
    var file = SHARED.resolve(name);
    assumeTrue(Files.exists(file), "the shared cases are not here");
    assertThat(lower(file)).isNotEmpty();
  }

  @ParameterizedTest
  @CsvSource("custom_op.graph, my_lib::exchange, custom_op.graph:12")
  void othersNameTheOpAndItsLine(String sample, String op, String line) {
    assertThatThrownBy(() -> lower(ROOT.resolve("samples").resolve(sample)))
        .isInstanceOf(UnsupportedOnGpu.class)
        .hasMessageContaining(op)
        .hasMessageContaining(line);
  }

  /**
   * A call that is refused.
   *
   * @param inputs of a program with the call
   * @param calls in it; the last one is refused
   */
  private record Refused(String what, String why, String inputs, List<String> calls) {
    String op() {
      var call = calls.getLast();
      return call.substring(call.indexOf("= ") + 2, call.indexOf('('));
    }
  }

  private static List<Refused> refused() throws IOException {
    return Resources.readLines(Resources.getResource("refused-calls.txt"), StandardCharsets.UTF_8)
        .stream()
        .filter(line -> !line.startsWith("#"))
        .map(line -> Splitter.on(" | ").splitToList(line))
        .map(
            row ->
                new Refused(
                    row.get(0), row.get(1), row.get(2), Splitter.on("; ").splitToList(row.get(3))))
        .toList();
  }

  @Test
  void refusedCallsNameTheOpAndItsLine() throws IOException {
    for (var row : refused()) {
      var text =
          """
          graph version 1
          graph t(%s) {
            %s
            return a
          }
          """
              .formatted(row.inputs(), String.join("\n  ", row.calls()));
      var plan =
          Compiler.forTarget(Target.H200_X4)
              .with(CompileOptions.DEFAULT.withRanks(1))
              .compile(GraphParser.parse(new SourceFile("refused.graph", text)));
      assertThatThrownBy(() -> DeviceLowering.lower(Lowering.lower(plan)), text)
          .isInstanceOf(UnsupportedOnGpu.class)
          .hasMessageContaining(row.op())
          .hasMessageContaining("refused.graph:%s)".formatted(2 + row.calls().size()));
    }
  }

  @Test
  void theDocumentsListIsRight() throws IOException {
    var lines =
        refused().stream().map(row -> "| %s | %s |".formatted(row.what(), row.why())).toList();
    var file = ROOT.resolve("docs/cuda-ops.md");
    var text = Files.readString(file);
    int start = text.indexOf("|---|---|\n") + "|---|---|\n".length();
    int end = text.indexOf("\n\n## What is slow");
    var wanted =
        text.substring(0, start)
            + String.join("\n", lines)
            + text.substring(Math.max(end, start - 1));
    if (Boolean.getBoolean("golden.update")) {
      Files.writeString(file, wanted);
    } else {
      assertThat(text)
          .as("docs/cuda-ops.md; if the code is right, run again with -Dgolden.update=true")
          .isEqualTo(wanted);
    }
  }
}
