package dev.symplan.ir.fx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSortedMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.ScalarType;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.GraphPrinter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FxImporterTest {
  private static final String HEAD =
      """
      class <lambda>(torch.nn.Module):
          def forward(self, x: "f32[8, 4][4, 1]cuda:0", y: "f32[4, 8][8, 1]cuda:0"):
      """;

  private final List<Diagnostic> warnings = new ArrayList<>();

  private Program read(String text) {
    return read(text, ImportOptions.named("g"));
  }

  private Program read(String text, ImportOptions options) {
    return FxImporter.read(new SourceFile("g.fx.txt", text), options, warnings::add);
  }

  private static ImportOptions dims(String symbol, long size, boolean bound) {
    var value = ImmutableMap.of(symbol, size);
    return new ImportOptions(
        "g",
        ImmutableList.of(),
        4,
        bound ? ImmutableMap.of() : value,
        bound ? value : ImmutableMap.of(),
        BuiltinOps.registry());
  }

  @Test
  void readsWhatPrintReadablePrints() {
    var program =
        read(
            HEAD
                + """
                        # File: mlp.py:3 in f, code: return x @ y
                        mm: "f32[8, 8][8, 1]cuda:0" = torch.ops.aten.mm.default(x, y);  x = y = None
                        add: "f32[8, 8][8, 1]cuda:0" = torch.ops.aten.add.Tensor(mm, 1e-05, alpha = 2);  mm = None
                        return (add, None)
                """);
    var graph = program.graphs().getFirst();
    assertThat(graph.ops())
        .extracting(op -> op.def().name().toString())
        .containsExactly("aten::mm", "aten::add.Tensor");
    assertThat(graph.ops().get(1).arg("other")).isEqualTo(new Arg.Float(1e-5));
    assertThat(graph.ops().get(1).arg("alpha")).isEqualTo(new Arg.Int(2));
    assertThat(graph.outputs()).hasSize(2).endsWith(Arg.None.NONE);
    assertThat(graph.ops().getFirst().notes().before())
        .containsExactly("# File: mlp.py:3 in f, code: return x @ y");
    assertThat(warnings).isEmpty();
  }

  @Test
  void readsSeveralLinesAndLogPrefixes() {
    var lines =
        """
        TRACED GRAPH
         ===== AFTER POST GRAD =====
         /torch/fx/_lazy_graph_module.py class <lambda>(torch.nn.Module):
            def forward(
                self,
                x: "f32[8][1]cuda:0",  # PlainAOTInput(idx=0)
            ):
                mul: "f32[8][1]cuda:0" = torch.ops.aten.mul.Tensor(x, -2);  x = None
                return (
                    mul,  # PlainAOTOutput(idx=0)
                )
        Some other line (that is) not Python [
        """
            .lines()
            .map(
                line ->
                    "[rank0]:V1120 21:20:19.453000 7731 torch/_inductor/compile_fx.py:1382] [0/0]"
                        + " [__post_grad_graphs] "
                        + line)
            .toList();
    var program = read(String.join("\n", lines) + "\nnoise 1 ( [ {\n");
    assertThat(program.graphs().getFirst().ops()).hasSize(1);
    assertThat(program.graphs().getFirst().inputs())
        .extracting(v -> v.type().toString())
        .containsExactly("f32[8]");
  }

  @Test
  void takesResultsApart() {
    var program =
        read(
            HEAD
                + """
                        split = torch.ops.aten.split.Tensor(x, 2, 1)
                        getitem_1: "f32[8, 2][4, 1]cuda:0" = split[1];  split = None
                        max_1 = torch.ops.aten.max.dim(y, 0)
                        indices: "i64[8][1]cuda:0" = max_1[1];  max_1 = None
                        return (getitem_1, indices)
                """);
    var ops = program.graphs().getFirst().ops();
    assertThat(ops.get(0).results()).extracting(v -> v.name()).containsExactly("", "getitem_1");
    assertThat(ops.get(1).results()).extracting(v -> v.name()).containsExactly("", "indices");
  }

  @Test
  void takesUnknownOpsFromTheirAnnotations() {
    var program =
        read(
            HEAD
                + """
                        a: "bf16[3][1]cuda:0" = torch.ops.mine.op.default(x, [y, y], 1, 's', k = torch.float32)
                        b: "bf16[3][1]cuda:0" = torch.ops.mine.op.default(y, [x], 2, 't', k = torch.float16)
                        return (a, b)
                """);
    assertThat(warnings).hasSize(1);
    assertThat(warnings.getFirst().code()).isEqualTo(DiagnosticCode.OPAQUE_OP);
    assertThat(warnings.getFirst().message()).contains("mine.op.default", "2 uses");
    assertThat(program.graphs().getFirst().ops().getFirst().result().type()).hasToString("bf16[3]");
  }

  @Test
  void unknownOpsAreTakenToDoAnythingToTheirTensors() {
    var text =
        HEAD
            + """
                    a = torch.ops.mine.pack_.default(x, 2, [y, None], out = y);  a = None
                    b: "f32[8][1]cuda:0" = torch.ops.mine.sync.default('s')
                    return (b,)
            """;
    var ops = read(text).graphs().getFirst().ops();
    assertThat(ops.get(0).def().schema())
        .hasToString(
            "mine::pack_(Tensor(arg0! -> *) arg0, int arg1, Tensor(arg2! -> *)?[] arg2, *,"
                + " Tensor(out! -> *) out) -> Any(*)");
    assertThat(ops.get(1).def().schema().isUnbounded()).isTrue();
    var printed = GraphPrinter.print(read(text));
    var again = GraphParser.parse(new SourceFile("again.graph", printed));
    assertThat(again.graphs().getFirst().ops().get(0).def().schema())
        .isEqualTo(ops.get(0).def().schema());
  }

  @Test
  void opsOfPyTorchWithoutARuleHaveTheirSchemas() {
    var text =
        HEAD
            + """
                    a = torch.ops.aten.linalg_multi_dot.out([x], out = y);  a = None
                    b = torch.ops.aten.linalg_multi_dot.out(x, y, x, y);  b = None
                    return (y,)
            """;
    var ops = read(text).graphs().getFirst().ops();
    assertThat(ops.get(0).def().schema().isUnbounded()).isFalse();
    // Another version's, perhaps: its schema is not the one that is known.
    assertThat(ops.get(1).def().schema().isUnbounded()).isTrue();
    assertThat(warnings).hasSize(1);
    assertThat(warnings.getFirst().message()).contains("aten.linalg_multi_dot.out", "PyTorch's");
  }

  @Test
  void resultsOfUnknownOpsWithoutATypeMayBeTakenOutButNotUsed() {
    var text =
        HEAD
            + """
                    op = torch.ops.symm_mem.fused_all_gather_matmul.default(x, [y], 0, '0', return_A = False)
                    getitem = op[0]
                    getitem_1 = op[1];  op = None
                    getitem_2: "f32[32, 8][8, 1]cuda:0" = getitem_1[0];  getitem_1 = None
            """;
    var op = read(text + "        return (getitem_2,)\n").graphs().getFirst().ops().getFirst();
    assertThat(op.results()).extracting(v -> v.name()).containsExactly("", "getitem_2");
    assertThatThrownBy(() -> read(text + "        return (getitem,)\n"))
        .hasMessageContaining(
            "error[missing-annotation]: 'getitem' has no type: its op is not known");
  }

  @Test
  void givesSymbolicSizesTheirValues() {
    var text =
        """
        class GraphModule(torch.nn.Module):
            def forward(self, s: "Sym(s77)", x: "f32[s77, 16][16, 1]cpu"):
                mul: "Sym(4*s77)" = s * 4
                g: "f32[4*s77, 16][16, 1]cpu" = torch.ops._c10d_functional.all_gather_into_tensor.default(x, 4, '0')
                v: "f32[2*s77, 32][32, 1]cpu" = torch.ops.aten.view.default(g, [(mul // 2), 32])
                return (v, mul)
        """;
    for (boolean bound : new boolean[] {false, true}) {
      var graph = read(text, dims("s77", 3, bound)).graphs().getFirst();
      assertThat(graph.inputs().getFirst().type()).isEqualTo(ScalarType.INT);
      assertThat(graph.ops().getLast().result().type()).hasToString("f32[6, 32]");
      assertThat(graph.outputs().get(1)).isEqualTo(new Arg.Int(12));
    }
    assertThatThrownBy(() -> read(text))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("dynamic-size")
        .hasMessageContaining("input 's' provides it")
        .hasMessageContaining("--dim s77=128");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          z: "f32[8, 4][4, 1]cuda:0" = torch.ops.aten.neg.default(q)   | unknown-value     | 'q' is not defined above
          z: "f32[8, 5][5, 1]cuda:0" = torch.ops.aten.neg.default(x)   | annotation-mismatch | is annotated f32[8, 5]
          z: "f32[8, 4][1, 8]cuda:0" = torch.ops.aten.alias.default(x) | annotation-mismatch | is annotated f32[8, 4][1, 8]
          z: "f32[8, 4][4, 1]cuda:0" = torch.ops.aten.mm.default(x, x) | type-mismatch     | inner sizes differ
          z: "f32[8, 4][4, 1]cuda:0" = torch.ops.aten.mm.default(x)    | bad-argument      | 'mat2'
          z: "g32[8]" = torch.ops.aten.neg.default(x)                  | syntax            | is not a type
          z = torch.ops.aten.neg.default(x                             | syntax            | '(' is not closed
          z = self.subgraph_0                                          | unsupported       | constant or a subgraph
          z = some.function(x)                                         | unsupported       | it calls Python functions
          z: "f32[8, 4][4, 1]cuda:0" = = torch.ops.aten.neg.default(x) | syntax            | expected a value
          """)
  void saysWhatIsWrong(String statement, String code, String message) {
    var text = HEAD + "        " + statement + "\n        return (x,)\n";
    assertThatThrownBy(() -> read(text))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("error[" + code + "]")
        .hasMessageContaining(message)
        .hasMessageContaining("g.fx.txt:3:");
  }

  @Test
  void refusesTheFormsThatLoseTypes() {
    assertThatThrownBy(() -> read("def forward(self, x):\n    return (x,)\n"))
        .hasMessageContaining("without types")
        .hasMessageContaining("include_stride=True");
    assertThatThrownBy(
            () -> read("%x : [num_users=1] = call_function[target=torch.ops.aten.mm](args = ())\n"))
        .hasMessageContaining("this is a node as str(graph) prints it");
    assertThatThrownBy(() -> read(""))
        .hasMessageContaining("the text contains no graph: it is empty");
    assertThatThrownBy(() -> read(HEAD)).hasMessageContaining("without a return statement");
  }

  @Test
  void findsRanksThatDisagree() {
    var own =
        HEAD
            + "        r: \"f32[8, 4][4, 1]cuda:0\" = torch.ops._c10d_functional.%s;  x ="
            + " None\n        return (r,)\n";
    var sum = new SourceFile("graph.fx.txt", own.formatted("all_reduce.default(x, 'sum', '0')"));
    var max =
        new SourceFile("graph.rank1.fx.txt", own.formatted("all_reduce.default(x, 'max', '0')"));
    var otherGroup =
        new SourceFile("graph.rank1.fx.txt", own.formatted("all_reduce.default(x, 'sum', '7')"));
    assertThatThrownBy(
            () ->
                FxImporter.read(
                    sum, ImmutableSortedMap.of(1, max), 2, ImportOptions.named("g"), warnings::add))
        .hasMessageContaining("ranks-disagree")
        .hasMessageContaining("graph.rank1.fx.txt:3")
        .hasMessageContaining("graph.fx.txt:3");
    var program =
        FxImporter.read(
            sum, ImmutableSortedMap.of(1, otherGroup), 2, ImportOptions.named("g"), warnings::add);
    assertThat(program.graphs()).hasSize(2);
    assertThat(program.graphs().get(1).runsOn(1)).isTrue();
    assertThat(program.graphs().get(1).runsOn(0)).isFalse();
  }

  @Test
  void damagedTextGivesAGraphOrAnError() throws IOException {
    var samples = Path.of(System.getProperty("symplan.root", "..")).resolve("samples/cases");
    var text = Files.readString(samples.resolve("fsdp_mlp_train_fwd/graph.fx.txt"));
    long seed = 20261121;
    var random = new SplittableRandom(seed);
    int errors = 0;
    for (int i = 0; i < 400; i++) {
      var damaged = damage(text, random);
      try {
        read(damaged);
      } catch (CompileException e) {
        errors++;
        assertThat(e.diagnostics()).as("seed %s, text %s", seed, i).isNotEmpty();
      }
    }
    assertThat(errors).isGreaterThan(200);
  }

  private static String damage(String text, SplittableRandom random) {
    int at = random.nextInt(text.length());
    int length = Math.min(1 + random.nextInt(30), text.length() - at);
    return switch (random.nextInt(4)) {
      case 0 -> text.substring(0, at);
      case 1 -> text.substring(0, at) + text.substring(at + length);
      case 2 -> text.substring(0, at) + text.substring(at, at + length) + text.substring(at);
      default -> text.substring(0, at) + (char) (32 + random.nextInt(95)) + text.substring(at + 1);
    };
  }
}
