package dev.symplan.ir.text;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Notes;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.GraphBuilder;
import dev.symplan.ir.graph.GraphBuilder.ResultSpec;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpRegistry;
import dev.symplan.ir.op.SchemaParser;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class GraphRoundTripTest {
  private static final OpRegistry REGISTRY = TestOps.registry();

  /** The op's declaration, as a text that uses it repeats it. */
  private static final String OPAQUE =
      "\nop test::opaque(Tensor input, *, str? name=None) -> (Tensor, Tensor)\n";

  private static Program parse(String text) {
    var sink = new DiagnosticSink();
    var program = GraphParser.parse(new SourceFile("test.graph", text), REGISTRY, sink);
    sink.throwIfErrors();
    return program;
  }

  private static String body(String statements) {
    return """
    graph version 1

    group tp = [0, 1, 2, 3]
    %s
    graph g(x: f32[4, 8], y: f32[4, 8], n: int, z: bf16[8, 4] @symm) {
      %s
      return x
    }
    """
        .formatted(statements.contains("test::opaque") ? OPAQUE : "", statements)
        .replace("  \n", "\n");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "a = test::add.Tensor(x, y)",
        "a: f32[4, 8] = test::add.Tensor(x, y)",
        "a = test::add.Tensor(x, y, alpha=2)",
        "a = test::add.Tensor(x, y, alpha=0.5)",
        "a = test::add.Tensor(x, y, alpha=n)",
        "a = test::add.Scalar(x, True)",
        "a = test::add.Scalar(x, -3, n)",
        "a = test::scale(x)",
        "a = test::scale(x, 0.1)",
        "a = test::scale(x, 1e-06)",
        "a = test::scale(x, 1e+16)",
        "a = test::scale(x, 1234567.0)",
        "a = test::scale(x, -inf)",
        "a = test::scale(x, inf, nan=nan)",
        "a, b = test::split.Tensor(x, 4, -1)",
        "a, _ = test::split.Tensor(x, 2)",
        "_, _ = test::split.Tensor(x, 2)",
        "a = test::cat([])",
        "a = test::cat([x])",
        "a = test::cat([x, y], -1)",
        "a = test::to.dtype(x, torch.bfloat16)",
        "a = test::to.dtype(x, torch.float8_e4m3fn, device=device(\"cuda:0\"))",
        "a = test::to.dtype(x, torch.int64, memory_format=torch.channels_last)",
        "a: f32[8, 4][1, 8] = test::t(x)",
        "a: f32[4, 8] @symm = test::add.Tensor(x, y)",
        "a: f32[4, 8] @local = test::add.Tensor(x, y)",
        "a: f32[4, 8] @external = test::add.Tensor(x, y)",
        "a: f32[4, 8][1, 4] = test::add.Tensor(x, y)",
        "a = test::pad(x, [1, 2])",
        "a = test::pad(x, [0, 0], \"reflect\")",
        "a = test::pad(x, [0, 0], \"it's \\\"q\\\" \\\\ \\n\\t\\x00 é 漢 😀\")",
        "test::barrier([x, y])",
        "test::barrier([])",
        "a: f32[2], b: i64[][] = test::opaque(x)",
        "a: f32[2], b: None = test::opaque(x)",
        "a: f32[2], _ = test::opaque(x)",
        "a: b8[0, 3], _: f8e5m2[] = test::opaque(x)",
        "test::opaque(x, name=\"n\")",
        "a: int, b: bool, c: float = test::opaque(x)",
        "a = test::all_reduce(x, \"sum\", \"tp\")",
        "graph = test::add.Tensor(x, y)",
        "group = test::add.Tensor(x, y)\n  op, ranks = test::split.Tensor(group, 2)",
        "device: f32[4, 8] = test::add.Tensor(x, y)\n  version = test::cat([device])",
        "# one\n  # two\n\n  a = test::cat([x])  # three",
        "a = test::cat([x])  # trailing, with ünïcode",
        "\n  # apart\n\n\n  a = test::cat([x])",
      })
  void printsStatementsAsTheyWere(String statement) {
    var text = body(statement);
    // i64[][] is a tensor without dimensions, whose strides say nothing.
    assertThat(GraphPrinter.print(parse(text))).isEqualTo(text.replace("i64[][]", "i64[]"));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "graph version 1\n",
        "# licence\n# more\n\ngraph version 1  # why\n",
        "graph version 1\n\n# only comments follow\n\n",
        "graph version 1\n\ngroup tp = [0, 1, 2, 3]\n",
        "graph version 1\n\n"
            + "# mesh\n"
            + "group row = [0, 1], [2, 3]  # rows\n"
            + "group col = [0, 2], [1, 3]\n",
        "graph version 1\n\ngroup a = [0]\n\n# apart\n\ngroup \"0\" = [1]\n",
        "graph version 1\n\ngroup \"return\" = [3, 1]\n",
        "graph version 1\n\nop my_lib::f(Tensor input) -> Tensor\n",
        "graph version 1\n\nop my_lib::f(Tensor input, str group) -> Tensor  symm_mem(input)"
            + " group(group)\n",
        "graph version 1\n\nop my_lib::f.a(Tensor a, Tensor[] b, str s='x', *, str g) -> (Tensor"
            + " first, Tensor)  symm_mem(a, b) symm_mem_results(first, 1) group(g)  # tail\n",
        "graph version 1\n\ngroup tp = [0, 1]\n\nop my_lib::f(Tensor(a!) x) -> ()\nop"
            + " my_lib::g(Tensor x) -> (Tensor, Tensor)\n\ngraph g(x: f32[]) {\n  my_lib::f(x)\n"
            + "  a: f32[2], b: f32[] = my_lib::g(x)\n  return a, b\n}\n",
        "graph version 1\n\ngraph g() {\n  return\n}\n",
        "graph version 1\n\n"
            + "# about it\n"
            + "graph g(x: f32[2]) {  # head\n"
            + "  # first\n"
            + "  return x, None, 1, 2.5, True  # last\n"
            + "}\n",
        "graph version 1\n\ngraph g(x: f32[2]) ranks [0, 1] {\n  return x\n}\n\n"
            + "graph g(x: f32[2]) ranks [2, 3] {\n  return x\n}\n",
        "graph version 1\n\ngraph \"<lambda>\"(x: f32[2]) {\n  return x\n}\n",
        "graph version 1\n\n"
            + "graph g(x: None, k: bool, a: f32[2, 2][1, 2] @external) {\n"
            + "  return a\n"
            + "}\n",
        "graph version 1\n\ngraph version(x: f32[2]) {\n  return x\n}\n# end\n",
      })
  void printsFilesAsTheyWere(String text) {
    assertThat(GraphPrinter.print(parse(text))).isEqualTo(text);
  }

  @Test
  void breaksLongSignaturesOneParameterALine() {
    var text =
        """
        graph version 1

        graph long_signature(
            first_weight: bf16[4096, 3584],
            second_weight: bf16[3584, 4096],
            activations: bf16[128, 4096][1, 128],
        ) ranks [0, 1] {
          return activations
        }
        """;
    assertThat(GraphPrinter.print(parse(text))).isEqualTo(text);
    var joined = text.replace("(\n    ", "(").replace(",\n    ", ", ").replace(",\n)", ")");
    assertThat(joined.lines().toList().get(2)).hasSizeGreaterThan(100);
    assertThat(GraphPrinter.print(parse(joined))).isEqualTo(text);
  }

  /** Forms that docs/language.md lists as printed otherwise than written. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "a = test::add.Tensor(x,y , alpha = 2) | a = test::add.Tensor(x, y, alpha=2)",
        "a = test::add.Tensor(x, y, alpha=1)   | a = test::add.Tensor(x, y)",
        "a = test::add.Tensor(other=y, self=x) | a = test::add.Tensor(x, y)",
        "a, b = test::split.Tensor(x, 4, dim=1) | a, b = test::split.Tensor(x, 4, 1)",
        "a = test::split.Tensor(x, 2)          | a, _ = test::split.Tensor(x, 2)",
        "test::split.Tensor(x, 2)              | _, _ = test::split.Tensor(x, 2)",
        "a = test::pad(x, 3)                   | a = test::pad(x, [3, 3])",
        "a = test::pad(x, 1, 'reflect')        | a = test::pad(x, [1, 1], \"reflect\")",
        "a = test::pad(x, 1, \"\\u0041\")      | a = test::pad(x, [1, 1], \"A\")",
        "a = test::scale(x, 2)                 | a = test::scale(x, 2.0)",
        "a = test::scale(x, .5)                | a = test::scale(x, 0.5)",
        "a = test::scale(x, 100e-2)            | a = test::scale(x, 1.0)",
        "a = test::to.dtype(x, torch.half)     | a = test::to.dtype(x, torch.float16)",
        "a: f32[4, 8][8, 1] = test::add.Tensor(x, y) | a: f32[4, 8] = test::add.Tensor(x, y)",
        "a: f32[8, 4] = test::t(x)             | a: f32[8, 4][1, 8] = test::t(x)",
        "a = test::mm.default(x, z)            | a = test::mm(x, z)",
        "a = test::cat([x, y,],)               | a = test::cat([x, y])",
        "a = test::cat([x,  # c\n    y])  # d  | # c\n  a = test::cat([x, y])  # d",
      })
  void printsOneTextForEachMeaning(String pair) {
    int bar = pair.indexOf(" | ");
    var written = body(pair.substring(0, bar).stripTrailing());
    var printed = body(pair.substring(bar + 3));

    assertThat(GraphPrinter.print(parse(written))).isEqualTo(printed);
    assertThat(GraphPrinter.print(parse(printed))).isEqualTo(printed);
  }

  @Test
  void ordersDeclarationsAndSeparatesParts() {
    var written =
        """
        graph version 1
        op my_lib::f(Tensor x) -> ()
        group tp = [0, 1]
        graph g() { return }   # tail
        graph h() {
          return   # r
          # end
        }
        """;
    var printed =
        """
        graph version 1

        group tp = [0, 1]

        op my_lib::f(Tensor x) -> ()

        graph g() {
          # tail
          return
        }

        graph h() {
          # end
          return  # r
        }
        """;
    assertThat(GraphPrinter.print(parse(written))).isEqualTo(printed);
    assertThat(GraphPrinter.print(parse(printed))).isEqualTo(printed);
  }

  @Test
  void takesWindowsLineEndsAndTabs() {
    var text = body("# c\n  a = test::cat([x,\n    y])");
    assertThat(GraphPrinter.print(parse(text.replace("\n", "\r\n").replace("  ", "\t"))))
        .isEqualTo(GraphPrinter.print(parse(text)));
  }

  @Test
  void writesEveryTypeWhenAsked() {
    var program = parse(body("a, _ = test::split.Tensor(x, 2)\n  b = test::t(a)"));

    assertThat(GraphPrinter.withTypes(program))
        .contains(
            "graph g(x: f32[4, 8][8, 1], y: f32[4, 8][8, 1], n: int, z: bf16[8, 4][4, 1] @symm)")
        .contains("  a: f32[2, 8][8, 1], _: f32[2, 8][8, 1] = test::split.Tensor(x, 2)\n")
        .contains("  b: f32[8, 2][1, 8] = test::t(a)\n");
    assertThat(GraphPrinter.print(parse(GraphPrinter.withTypes(program))))
        .contains("  b: f32[8, 2][1, 8] = test::t(a)\n");
  }

  private static OpDef imported(String schema) {
    return OpDef.opaque(SchemaParser.parse(schema));
  }

  private static void add(GraphBuilder builder, String schema, String result, Arg... args) {
    builder.op(
        imported(schema),
        ImmutableList.copyOf(args),
        List.of(
            new ResultSpec(
                result, Optional.of(TensorType.contiguous(DType.F32, 2)), true, Span.NONE)),
        Span.NONE,
        Notes.NONE);
  }

  @Test
  void declaresOpsThatNoRuleDescribes() {
    var builder = new GraphBuilder("g", Span.NONE, new DiagnosticSink());
    var x = new Arg.Ref(builder.input("x", TensorType.contiguous(DType.F32, 2), Span.NONE));
    add(builder, "my::once(Tensor arg0, int arg1) -> Any", "a", x, new Arg.Int(1));
    add(builder, "my::types(Tensor arg0, int arg1) -> Any", "b", x, new Arg.Int(1));
    add(builder, "my::types(Tensor arg0, Tensor arg1) -> Any", "c", x, x);
    add(builder, "my::counts(Tensor arg0) -> Any", "d", x);
    add(builder, "my::counts(Tensor arg0, Tensor arg1) -> Any", "e", x, x);
    add(builder, "my::counts.Tensor(Tensor arg0, *, Tensor k) -> Any", "f", x, x);
    add(builder, "my::counts.Tensor(Tensor arg0, *, Tensor j) -> Any", "h", x, x);
    builder.output(x);
    var program =
        new Program(
            ImmutableList.of(), ImmutableList.of(), ImmutableList.of(builder.build()), Notes.NONE);

    var text = GraphPrinter.print(program);

    assertThat(text)
        .isEqualTo(
            """
            graph version 1

            op my::once(Tensor arg0, int arg1) -> Any
            op my::types(Tensor arg0, Any arg1) -> Any
            op my::counts(Tensor arg0) -> Any
            op my::counts.call_2(Tensor arg0, Tensor arg1) -> Any
            op my::counts.Tensor(Tensor arg0, *, Tensor k) -> Any
            op my::counts.Tensor_2(Tensor arg0, *, Tensor j) -> Any

            graph g(x: f32[2]) {
              a: f32[2] = my::once(x, 1)
              b: f32[2] = my::types(x, 1)
              c: f32[2] = my::types(x, x)
              d: f32[2] = my::counts(x)
              e: f32[2] = my::counts.call_2(x, x)
              f: f32[2] = my::counts.Tensor(x, k=x)
              h: f32[2] = my::counts.Tensor_2(x, j=x)
              return x
            }
            """);
    assertThat(GraphPrinter.print(parse(text))).isEqualTo(text);
  }

  @Test
  void namesValuesThatHaveNoWordForAName() {
    var builder = new GraphBuilder("a graph", Span.NONE, new DiagnosticSink());
    var type = TensorType.contiguous(DType.F32, 2);
    var input = builder.input("self.weight", type, Span.NONE);
    var other = builder.input("self_weight", type, Span.NONE);
    builder.input("return", type, Span.NONE);
    builder.input("1st", type, Span.NONE);
    var results =
        builder.op(
            REGISTRY.get("test::split.Tensor"),
            ImmutableList.of(new Arg.Ref(input), new Arg.Int(1), new Arg.Int(0)),
            List.of(),
            Span.NONE,
            new Notes(ImmutableList.of("no hash", "", "# two\nlines"), ""));
    builder.output(new Arg.Ref(results.get(1)));
    builder.output(new Arg.Ref(other));
    var program =
        new Program(
            ImmutableList.of(), ImmutableList.of(), ImmutableList.of(builder.build()), Notes.NONE);

    var text = GraphPrinter.print(program);

    assertThat(text)
        .isEqualTo(
            """
            graph version 1

            graph "a graph"(self_weight_1: f32[2], self_weight: f32[2], return_1: f32[2], _1st: f32[2]) {
              # no hash

              # two lines
              _, v = test::split.Tensor(self_weight_1, 1)
              return v, self_weight
            }
            """);
    assertThat(GraphPrinter.print(parse(text))).isEqualTo(text);
  }

  @Test
  void keepsTypesThatTheRuleDoesNotGive() {
    var builder = new GraphBuilder("g", Span.NONE, new DiagnosticSink());
    var x = builder.input("x", TensorType.contiguous(DType.F32, 2, 4), Span.NONE);
    var placed =
        builder.op(
            REGISTRY.get("test::t"),
            ImmutableList.of(new Arg.Ref(x)),
            List.of(
                new ResultSpec(
                    "y",
                    Optional.of(
                        TensorType.contiguous(DType.F32, 4, 2).withSpace(MemorySpace.SYMMETRIC)),
                    false,
                    Span.NONE)),
            Span.NONE,
            Notes.NONE);
    builder.output(new Arg.Ref(placed.getFirst()));
    var graph = builder.build();

    assertThat(GraphPrinter.print(graph)).contains("y: f32[4, 2][1, 4] @symm = test::t(x)");
  }

  @Test
  void printsAGraphAlone() {
    var program = parse(body("a = test::cat([x])"));

    assertThat(GraphPrinter.print(program.graphs().getFirst()))
        .isEqualTo(
            """
            graph g(x: f32[4, 8], y: f32[4, 8], n: int, z: bf16[8, 4] @symm) {
              a = test::cat([x])
              return x
            }
            """);
  }

  /** Long lists are printed as meshes and slices, short ones are not. */
  @ParameterizedTest
  @CsvSource({
    "'mesh [16, 128, 8] dim 1', 'mesh [16, 128, 8] dim 1'",
    "'mesh [16, 128, 8] dim 0', 'mesh [16, 1024] dim 0'",
    "'mesh [16, 128, 8] dim 0, 2', 'mesh [16, 128, 8] dim 0, 2'",
    "'mesh [4, 4, 4, 4] dim 1, 2', 'mesh [4, 16, 4] dim 1'",
    "'mesh [64, 1] dim 1', 'mesh [64, 1] dim 1'",
    "'mesh [64] dim 0', 'mesh [64] dim 0'",
    "'mesh [1, 64] dim 0', 'mesh [64, 1] dim 1'",
    "'mesh [2, 4] dim 0', '[0, 4], [1, 5], [2, 6], [3, 7]'",
    "'[0:64:2], [1:64:2]', 'mesh [32, 2] dim 0'",
    "'[1:64:2], [0:64:2]', '[1:65:2], [0:64:2]'",
    "'[0:32], [34:66]', '[0:32], [34:66]'",
    "'[39, 0:30, 40, 44]', '[39, 0:30, 40, 44]'",
    "'[65535, 0:65535]', '[65535, 0:65535]'",
    "'[0:65536]', 'mesh [65536] dim 0'"
  })
  void groups(String written, String printed) {
    var program = parse("graph version 1\n\ngroup g = " + written + "\n");
    var text = "graph version 1\n\ngroup g = " + printed + "\n";
    assertThat(GraphPrinter.print(program)).isEqualTo(text);
    assertThat(parse(text).groups()).isEqualTo(program.groups());
  }

  /** Each rank of a part differs from the first one only in the dimensions of the group. */
  @Test
  void partsOfMeshes() {
    var groups =
        parse(
                """
                graph version 1
                group middle = mesh [2, 3, 2] dim 1
                group outer = mesh [2, 3, 2] dim 0, 2
                group listed = [0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]
                group also = [0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11]
                """)
            .groups();
    assertThat(groups.get(0).members()).isEqualTo(groups.get(2).members());
    assertThat(groups.get(1).members()).isEqualTo(groups.get(3).members());
  }
}
