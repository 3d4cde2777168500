package dev.symplan.planner.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.options.CompileOptions;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The files of a case beside its graph. */
class ProgramReaderTest {
  private static final String GRAPH =
      """
      class GraphModule(torch.nn.Module):
          def forward(self, arg0_1: "Sym(s77)", arg1_1: "f32[s77, 4][4, 1]cpu"):
              all_reduce: "f32[s77, 4][4, 1]cpu" = torch.ops._c10d_functional.all_reduce.default(arg1_1, 'sum', '%s')
              wait_tensor: "f32[s77, 4][4, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_reduce)
              return (wait_tensor,)
      """;

  @TempDir private Path folder;

  @BeforeEach
  void write() throws IOException {
    write("graph.fx.txt", GRAPH.formatted("tp"));
    write("dims.json", "{\"s77\": 3}");
    for (int rank = 0; rank < 4; rank++) {
      write("rank" + rank + ".inputs.safetensors", "");
    }
  }

  private void write(String name, String text) throws IOException {
    Files.writeString(folder.resolve(name), text);
  }

  private Program read(CompileOptions options) {
    return ProgramReader.read(folder, options, _ -> {});
  }

  private Program read() {
    return read(CompileOptions.DEFAULT);
  }

  private static ProcessGroup pairs(String name) {
    return new ProcessGroup(
        name, ImmutableList.of(ImmutableIntArray.of(0, 1), ImmutableIntArray.of(3, 2)));
  }

  @Test
  void tellsTheLanguagesApartBehindLongHeads() {
    for (var head : List.of("# a comment\n".repeat(20_000), "\n".repeat(20_000), "# x\n \n#\n")) {
      assertThat(named(head + GRAPH.formatted("0"))).as("FX text").isEqualTo("text");
      assertThat(named(head + "graph version 1\ngraph mlp(x: f32[2]) {\n  return x\n}\n"))
          .as("a graph file")
          .isEqualTo("mlp");
    }
  }

  private static String named(String text) {
    var options =
        CompileOptions.DEFAULT.withRanks(2).withDims(ImmutableMap.of("s77", 3L), ImmutableMap.of());
    return ProgramReader.read(new SourceFile("text", text), options, _ -> {})
        .graphs()
        .getFirst()
        .name();
  }

  @Test
  void readsModulesOfXlaWhateverTheirNamesAndPacked() throws IOException {
    var module =
        """
        // dumped by XLA
        HloModule jit_f

        ENTRY %main (x: f32[4]) -> f32[4] {
          %x = f32[4]{0} parameter(0)
          ROOT %y = f32[4]{0} negate(%x)
        }
        """;
    assertThat(named(module)).isEqualTo("jit_f");
    var packed = folder.resolve("module.hlo.gz");
    try (var out = new GZIPOutputStream(Files.newOutputStream(packed))) {
      out.write(module.getBytes(StandardCharsets.UTF_8));
    }
    var program = ProgramReader.read(packed, CompileOptions.DEFAULT.withRanks(2), _ -> {});
    assertThat(program.graphs().getFirst().ops())
        .extracting(op -> op.def().name().toString())
        .containsExactly("aten::neg");
    assertThat(program.groups()).containsExactly(ProcessGroup.world("devices", 2));
    var bytes = Files.readAllBytes(packed);
    for (int end = 2; end < bytes.length; end++) {
      Files.write(packed, Arrays.copyOf(bytes, end));
      assertThatThrownBy(
              () -> ProgramReader.read(packed, CompileOptions.DEFAULT.withRanks(2), _ -> {}))
          .isInstanceOf(CompileException.class)
          .hasMessageContaining("module.hlo.gz");
    }
  }

  @Test
  void eachRankMayKnowItsOwnGroupsOnly() throws IOException {
    write("groups.rank0.json", "{\"tp\": [0, 1]}");
    write("groups.rank1.json", "{\"tp\": [0, 1]}");
    write("groups.rank2.json", "{\"tp\": [3, 2]}");
    assertThat(read().groups()).containsExactly(pairs("tp"));
  }

  @Test
  void aNameMayBeSeveralGroups() throws IOException {
    write("groups.json", "{\"tp\": [[0, 1], [3, 2]]}");
    assertThat(read().groups()).containsExactly(pairs("tp"));
  }

  @Test
  void groupsThatOverlapAreAnError() throws IOException {
    write("groups.rank0.json", "{\"tp\": [0, 1]}");
    write("groups.rank2.json", "{\"tp\": [1, 2]}");
    assertThatThrownBy(this::read)
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("groups.rank2.json")
        .hasMessageContaining("group tp has rank 1 twice");
  }

  @Test
  void groupsThatAreNoRanksAreAnError() throws IOException {
    for (var text :
        new String[] {"{\"tp\": 3}", "{\"tp\": [0, \"1\"]}", "{\"tp\": [[0], 1]}", "[0, 1]", "{"}) {
      write("groups.json", text);
      assertThatThrownBy(this::read)
          .as(text)
          .isInstanceOf(CompileException.class)
          .hasMessageContaining("groups.json");
    }
  }

  @Test
  void ranksWithoutCollectivesStillRun() throws IOException {
    write(
        "graph.fx.txt",
        """
        class GraphModule(torch.nn.Module):
            def forward(self, arg0_1: "f32[4][1]cpu"):
                relu: "f32[4][1]cpu" = torch.ops.aten.relu.default(arg0_1)
                return (relu,)
        """);
    assertThat(read().groups()).containsExactly(ProcessGroup.world("world", 4));
  }

  @Test
  void symbolicSizesAreThoseOfTheCapture() {
    assertThat(read().graphs().getFirst().inputs().get(1).tensor().size(0)).isEqualTo(3);
    var asked = CompileOptions.DEFAULT.withDims(ImmutableMap.of("s77", 5L), ImmutableMap.of());
    assertThat(read(asked).graphs().getFirst().inputs().get(1).tensor().size(0)).isEqualTo(5);
    var bound = CompileOptions.DEFAULT.withDims(ImmutableMap.of(), ImmutableMap.of("s77", 7L));
    assertThat(read(bound).graphs().getFirst().inputs().get(1).tensor().size(0)).isEqualTo(7);
  }

  @Test
  void sizesThatAreNoIntegersAreAnError() throws IOException {
    write("dims.json", "{\"s77\": \"three\"}");
    assertThatThrownBy(this::read)
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("dims.json:1:9")
        .hasMessageContaining("this is not a 64-bit integer");
  }
}
