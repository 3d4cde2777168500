package dev.symplan.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.host.HostBackend;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Graphs with a symbolic size, in versions for several values of it. */
class BucketsTest {

  /** Multiplies rows by a weight, and counts them in a tensor that it updates in place. */
  private static final String PREFILL =
      """
      class GraphModule(torch.nn.Module):
          def forward(self, s: "Sym(s77)", x: "f32[s77, 2][2, 1]cpu", w: "f32[2, 3][3, 1]cpu", count: "i64[1][1]cpu"):
              mm: "f32[s77, 3][3, 1]cpu" = torch.ops.aten.mm.default(x, w)
              add: "i64[1][1]cpu" = torch.ops.aten.add.Tensor(count, s)
              copy_: "i64[1][1]cpu" = torch.ops.aten.copy_.default(count, add)
              return (mm,)
      """;

  private static final String DECODE =
      """
      class GraphModule(torch.nn.Module):
          def forward(self, y: "f32[1, 2][2, 1]cpu", weight: "f32[2, 3][3, 1]cpu", count: "i64[1][1]cpu"):
              mm: "f32[1, 3][3, 1]cpu" = torch.ops.aten.mm.default(y, weight)
              add: "i64[1][1]cpu" = torch.ops.aten.add.Tensor(count, 1)
              copy_: "i64[1][1]cpu" = torch.ops.aten.copy_.default(count, add)
              return (mm,)
      """;

  private static final String TIES =
      """
      [{"from": {"graph": 0, "value": "w"}, "to": {"graph": 1, "value": "weight"}},
       {"from": {"graph": 0, "value": "count"}, "to": {"graph": 1, "value": "count"}}]
      """;

  @TempDir private Path folder;
  private Path prefill = Path.of("");
  private Path decode = Path.of("");
  private Path ties = Path.of("");

  @BeforeEach
  void write() throws IOException {
    prefill = Files.writeString(folder.resolve("prefill.fx.txt"), PREFILL);
    decode = Files.writeString(folder.resolve("decode.fx.txt"), DECODE);
    ties = Files.writeString(folder.resolve("ties.json"), TIES);
  }

  private Plan plan() {
    var compiler = Compiler.forDefaultTarget().with(CompileOptions.DEFAULT.withRanks(1));
    return compiler.compileBuckets(
        List.of(prefill, decode), Optional.of(ties), "s77", List.of(2L, 4L, 8L));
  }

  @Test
  void versionsShareWhatDoesNotDependOnTheSize() {
    var plan = PlanFile.read(new SourceFile("p.plan", PlanFile.toJson(plan())));
    try (var session = Session.open(plan, new HostBackend())) {
      assertThat(session.graphs().stream().map(GraphSignature::name))
          .containsExactly("prefill_s77_2", "prefill_s77_4", "prefill_s77_8", "decode");
      assertThat(session.graphs()).allMatch(GraphSignature::independent);
      assertThat(session.inputNames())
          .contains("x_s77_2", "x_s77_4", "x_s77_8", "w", "count", "y")
          .doesNotContain("weight", "w_1", "count_1");
      session.input(0, "count").memory().fill((byte) 0);
      session.input(0, "y").memory().fill((byte) 0);
      var w = session.input(0, "w");
      for (int i = 0; i < 6; i++) {
        w.set(i + 1, i / 3, i % 3);
      }
      for (int rows : new int[] {2, 4, 8}) {
        var x = session.input(0, "x_s77_" + rows);
        for (int row = 0; row < rows; row++) {
          x.set(row, row, 0);
          x.set(rows, row, 1);
        }
      }
      long count = 0;
      for (int rows : new int[] {8, 3, 2, 1, 4, 5}) {
        var graph = session.bucket("prefill", "s77", rows);
        int size = rows <= 2 ? 2 : rows <= 4 ? 4 : 8;
        assertThat(graph.name()).isEqualTo("prefill_s77_" + size);
        session.run(graph.name());
        var mm = session.output(0, graph.firstOutput()).orElseThrow();
        assertThat(mm.type().size(0)).isEqualTo(size);
        for (int row = 0; row < size; row++) {
          assertThat(mm.get(row, 1)).isEqualTo(row * 2 + size * 5);
        }
        session.run("decode");
        count += size + 1;
        assertThat(session.input(0, "count").getLong(0)).isEqualTo(count);
      }
    }
  }

  @Test
  void aSizeAboveTheLargestIsAnError() {
    try (var session = Session.open(plan(), new HostBackend())) {
      assertThatThrownBy(() -> session.bucket("prefill", "s77", 9))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("graph 'prefill' has no bucket for s77 = 9; it has [2, 4, 8]");
      assertThatThrownBy(() -> session.bucket("decode", "s77", 1))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("no graph has the name 'decode_s77_N'; graphs: [prefill_s77_2,");
    }
  }

  private void fails(String size, List<Long> values, String message) {
    var compiler = Compiler.forDefaultTarget();
    assertThatThrownBy(
            () ->
                compiler.compileBuckets(List.of(prefill, decode), Optional.of(ties), size, values))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining(message);
  }

  @Test
  void wrongBucketsAreErrors() {
    fails("s78", List.of(2L, 4L), "no value");
    fails("s77", List.of(2L), "[2] are not two or more ascending positive sizes");
    fails("s77", List.of(4L, 2L), "[4, 2] are not two or more ascending positive sizes");
    fails("s77", List.of(0L, 2L), "[0, 2] are not two or more ascending positive sizes");
  }

  @Test
  void graphsThatHandResultsOnAreRefused() throws IOException {
    Files.writeString(
        ties,
        "[{\"from\": {\"graph\": 0, \"value\": \"mm\"}, \"to\": {\"graph\": 1, \"value\":"
            + " \"y\"}}]");
    fails("s77", List.of(2L, 4L), "graph 0 has no input 'mm'");
    Files.writeString(
        ties,
        "[{\"from\": {\"graph\": 0, \"value\": \"w\"}, \"to\": {\"graph\": 1, \"value\": \"v\"}}]");
    fails("s77", List.of(2L, 4L), "graph 1 has no input 'v'");
    Files.writeString(
        ties,
        "[{\"from\": {\"graph\": 0, \"value\": \"x\"}, \"to\": {\"graph\": 1, \"value\": \"y\"}}]");
    fails("s77", List.of(1L, 4L), "'x' is f32[4, 2] in graph 0, but 'y' is f32[1, 2] in graph 1");
    Files.writeString(ties, TIES.replace("]\n", ", ") + TIES.substring(1));
    fails("s77", List.of(2L, 4L), "input 'weight' of graph 1 is tied twice");
  }

  @Test
  void errorsNameTheBucket() throws IOException {
    Files.writeString(
        prefill,
        """
        class GraphModule(torch.nn.Module):
            def forward(self, s: "Sym(s77)", x: "f32[4, 2][2, 1]cpu"):
                rows: "f32[s77, 2][2, 1]cpu" = torch.ops.aten.slice.Tensor(x, 0, 0, s)
                return (rows,)
        """);
    fails("s77", List.of(2L, 8L), "--buckets: the errors above are for s77 = 8");
  }

  @Test
  void aGraphWithoutTheSizeIsRefused() {
    var compiler = Compiler.forDefaultTarget();
    assertThatThrownBy(
            () ->
                compiler.compileBuckets(List.of(decode), Optional.empty(), "s77", List.of(2L, 4L)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("no graph has the size 's77'");
  }
}
