package dev.symplan.ir.text;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.ScalarType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.OpRegistry;
import dev.symplan.ir.op.OpTrait;
import org.junit.jupiter.api.Test;

class GraphParserTest {
  private final OpRegistry registry = TestOps.registry();

  private Program parse(String text) {
    var sink = new DiagnosticSink();
    var program = GraphParser.parse(new SourceFile("test.graph", text), registry, sink);
    sink.throwIfErrors();
    return program;
  }

  @Test
  void readsGraphs() {
    var graph =
        parse(
                """
                graph version 1
                graph mlp(x: bf16[4, 8], w: f32[8, 4][1, 8] @symm, n: int) ranks [0, 2] {
                  a, _ = test::split.Tensor(x, 2)
                  b: bf16[2, 8] @local = test::cat([a, a], dim=-1)
                  return b, None, n, 3
                }
                """)
            .graphs()
            .getFirst();

    assertThat(graph.name()).isEqualTo("mlp");
    assertThat(graph.ranks()).isEqualTo(ImmutableIntArray.of(0, 2));
    assertThat(graph.inputs()).extracting(Value::name).containsExactly("x", "w", "n");
    assertThat(graph.inputs())
        .extracting(Value::type)
        .containsExactly(
            TensorType.contiguous(DType.BF16, 4, 8),
            new TensorType(
                DType.F32,
                ImmutableLongArray.of(8, 4),
                ImmutableLongArray.of(1, 8),
                MemorySpace.SYMMETRIC),
            ScalarType.INT);
    assertThat(graph.ops()).hasSize(2);
    var split = graph.ops().getFirst();
    assertThat(split.def().name()).hasToString("test::split.Tensor");
    assertThat(split.args())
        .containsExactly(new Arg.Ref(graph.inputs().getFirst()), new Arg.Int(2), new Arg.Int(0));
    assertThat(split.results()).extracting(Value::name).containsExactly("a", "");
    assertThat(split.span()).hasToString("test.graph:3:10");
    var cat = graph.ops().get(1).result();
    assertThat(cat.annotated()).isTrue();
    assertThat(cat.tensor().space()).isEqualTo(MemorySpace.LOCAL);
    assertThat(cat.span()).hasToString("test.graph:4:3");
    assertThat(graph.outputs())
        .containsExactly(
            new Arg.Ref(cat), Arg.None.NONE, new Arg.Ref(graph.inputs().get(2)), new Arg.Int(3));
    assertThat(graph.valueCount()).isEqualTo(6);
  }

  @Test
  void readsGroups() {
    assertThat(parse("graph version 1\ngroup tp = [1, 0]\ngroup \"0\" = [0, 1], [2, 3]\n").groups())
        .containsExactly(
            new ProcessGroup("tp", ImmutableList.of(ImmutableIntArray.of(1, 0))),
            new ProcessGroup(
                "0", ImmutableList.of(ImmutableIntArray.of(0, 1), ImmutableIntArray.of(2, 3))));
  }

  @Test
  void readsDeclarationsWithTheirRegistrations() {
    var declarations =
        parse(
                """
                graph version 1
                op a::plain(Tensor x) -> Tensor
                op a::inferred(Tensor x, Tensor[] y, str g) -> Tensor  symm_mem(y)
                op a::chosen(Tensor x, str mode, str g) -> (Tensor, Tensor b)
                """)
            .declarations();

    assertThat(declarations).hasSize(3);
    assertThat(declarations.get(0).collective()).isEmpty();
    assertThat(declarations.get(0).has(OpTrait.OPAQUE)).isTrue();
    assertThat(declarations.get(1).symmMemArgs()).containsExactly("y");
    assertThat(declarations.get(1).collective())
        .hasValueSatisfying(
            spec -> {
              assertThat(spec.kind()).isEqualTo(CollectiveSpec.Kind.CUSTOM);
              assertThat(spec.operand()).isEqualTo("y");
              assertThat(spec.group()).contains("g");
            });
  }

  @Test
  void readsGroupAndResultClauses() {
    var def =
        parse(
                "graph version 1\nop a::b(int n, Tensor x, str mode, str g) -> (Tensor, Tensor b) "
                    + " symm_mem_results(0, b) group(g)\n")
            .declarations()
            .getFirst();

    assertThat(def.symmMemArgs()).isEmpty();
    assertThat(def.symmMemResults()).containsExactly("0", "b");
    assertThat(def.collective())
        .hasValueSatisfying(
            spec -> {
              assertThat(spec.operand()).isEqualTo("x");
              assertThat(spec.group()).contains("g");
            });
  }

  @Test
  void declaredOpsBelongToTheFile() {
    var text = "graph version 1\nop a::b(Tensor x) -> Tensor\n";

    parse(text);
    parse(text);

    assertThat(registry.overloads("a::b")).isEmpty();
  }

  @Test
  void takesDeclarationsOfKnownOpsThatSayTheSame() {
    var schema = "test::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";

    var known = parse("graph version 1\nop " + schema + "\n").declarations().getFirst();

    assertThat(known.rule()).isPresent();
    assertThatThrownBy(() -> parse("graph version 1\nop " + schema + "  group(self)\n"))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("error[bad-registration]");
    assertThatThrownBy(() -> parse("graph version 1\nop test::mm(Tensor a, Tensor b) -> Tensor\n"))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("test::mm is already defined, as another op");
  }

  @Test
  void checksGroupsOfDeclaredCollectives() {
    var text =
        """
        graph version 1
        op a::b(Tensor x, str mode, str g) -> Tensor  symm_mem(x) group(g)
        graph f(x: f32[2]) {
          y: f32[2] = a::b(x, "tp", "dp")
          return y
        }
        """;
    assertThatThrownBy(() -> parse(text))
        .isInstanceOf(CompileException.class)
        .hasMessageStartingWith("test.graph:4:29: error[unknown-group]: no group 'dp' is declared");
    assertThat(parse(text.replace("1\n", "1\ngroup dp = [0, 1]\n")).graphs()).hasSize(1);
  }

  @Test
  void valuesMayBeCalledAsTheWordsOfTheLanguage() {
    var graph =
        parse(
                """
                graph version 1
                graph graph(graph: f32[2], group: f32[2], op: f32[2], version: f32[2]) {
                  ranks = test::cat([graph, group, op, version])
                  device, torch = test::split.Tensor(ranks, 1)
                  symm: f32[1] = test::cat([device])
                  return symm, torch
                }
                """)
            .graphs()
            .getFirst();

    assertThat(graph.ops()).hasSize(3);
  }

  @Test
  void throwsWithoutASink() {
    assertThatThrownBy(() -> GraphParser.parse(new SourceFile("a.graph", "graph version 3\n")))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("a.graph:1:15: error[unsupported-version]");
  }
}
