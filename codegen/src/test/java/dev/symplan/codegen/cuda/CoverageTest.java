package dev.symplan.codegen.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;
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

  @Test
  void theDocumentsListIsRight() throws IOException {
    var lists = new TreeMap<String, TreeSet<String>>();
    for (var name : BuiltinOps.registry().names()) {
      LocalLowering.family(BuiltinOps.registry().get(name.toString()))
          .ifPresent(
              family -> lists.computeIfAbsent(family, _ -> new TreeSet<>()).add(name.toString()));
    }
    var lines = new ArrayList<String>();
    lists.forEach((family, ops) -> lines.add("| %s | %s |".formatted(family, text(ops))));
    var file = ROOT.resolve("docs/cuda-ops.md");
    var text = Files.readString(file);
    int start = text.indexOf("|---|---|\n") + "|---|---|\n".length();
    var wanted = text.substring(0, start) + String.join("\n", lines) + "\n";
    if (Boolean.getBoolean("golden.update")) {
      Files.writeString(file, wanted);
    } else {
      assertThat(text)
          .as("docs/cuda-ops.md; if the code is right, run again with -Dgolden.update=true")
          .isEqualTo(wanted);
    }
  }

  /** Overloads in braces after their op. */
  private static String text(TreeSet<String> ops) {
    var overloads = new TreeMap<String, List<String>>();
    for (var op : ops) {
      int dot = op.indexOf('.');
      overloads
          .computeIfAbsent(dot < 0 ? op : op.substring(0, dot), _ -> new ArrayList<>())
          .add(dot < 0 ? "" : op.substring(dot + 1));
    }
    var texts = new ArrayList<String>();
    overloads.forEach(
        (op, all) -> {
          var named = all.stream().filter(overload -> !overload.isEmpty()).toList();
          var bare = op.startsWith("aten::") ? op.substring("aten::".length()) : op;
          texts.add("`" + bare + (named.isEmpty() ? "" : "." + String.join("/", named)) + "`");
        });
    return String.join(" ", texts);
  }
}
