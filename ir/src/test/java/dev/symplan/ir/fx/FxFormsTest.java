package dev.symplan.ir.fx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.NoneType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.op.OpTrait;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The forms of statements, as they occur in what PyTorch prints. */
class FxFormsTest {
  private static final String X = "x: \"f32[8, 4][4, 1]cuda:0\"";
  private static final String DYNAMIC = "s: \"Sym(s77)\", x: \"f32[s77, 4][4, 1]cuda:0\"";

  private final List<Diagnostic> warnings = new ArrayList<>();

  private Graph opaque(String statements) {
    return FxTexts.read(FxTexts.listing(X, statements), 4, warnings::add).graphs().getFirst();
  }

  private static List<String> names(List<Value> values) {
    return values.stream().map(Value::name).toList();
  }

  private static void hasOneError(Throwable e) {
    assertThat(String.valueOf(e.getMessage())).containsOnlyOnce("error[");
  }

  @Test
  void readsEveryKindOfArgument() {
    var graph =
        opaque(
            """
            a: "f32[2][1]cuda:0" = torch.ops.my.op.default(x, -9223372036854775808, 9223372036854775807, \
            -3.4028234663852886e+38, 1e-05, inf, -inf, nan, 's\\'\\n', True, None, (1, 2,), [], [x, None], \
            torch.bfloat16, torch.channels_last, device(type='cuda', index=3), layout = torch.strided)
            return (a,)
            """);
    var args = graph.ops().getFirst().args();
    assertThat(args.subList(1, args.size()))
        .containsExactly(
            new Arg.Int(Long.MIN_VALUE),
            new Arg.Int(Long.MAX_VALUE),
            new Arg.Float(-3.4028234663852886e+38),
            new Arg.Float(1e-05),
            new Arg.Float(Double.POSITIVE_INFINITY),
            new Arg.Float(Double.NEGATIVE_INFINITY),
            new Arg.Float(Double.NaN),
            new Arg.Str("s'\n"),
            new Arg.Bool(true),
            Arg.None.NONE,
            new Arg.Seq(ImmutableList.of(new Arg.Int(1), new Arg.Int(2))),
            new Arg.Seq(ImmutableList.of()),
            new Arg.Seq(ImmutableList.of(new Arg.Ref(graph.inputs().getFirst()), Arg.None.NONE)),
            new Arg.Dtype(DType.BF16),
            new Arg.Symbol("channels_last"),
            new Arg.Device("cuda:3"),
            new Arg.Symbol("strided"));
  }

  @Test
  void readsSignaturesAndReturnsOverSeveralLines() {
    var graph =
        FxTexts.graph(
            """
            class GraphModule(torch.nn.Module):
                def forward(
                    self,
                    x: "f32[4][1]cuda:0",  # PlainAOTInput(idx=0)
                    n: "f32[][]cuda:0",
                ):
                    # No stacktrace found for following nodes
                    a: "f32[4][1]cuda:0" = torch.ops.aten.mul.Tensor(x, n);  x = n = None

                    # recompute: MUST_SAVE File: a.py:1 in f, code: y = (x
                    b: "f32[4][1]cuda:0" = torch.ops.aten.neg.default(a);  a = None
                    return (
                        None,  # None
                        b,  # PlainAOTOutput(idx=0)
                    )
            """);
    assertThat(graph.inputs())
        .extracting(v -> v.type().toString())
        .containsExactly("f32[4]", "f32[]");
    assertThat(graph.outputs())
        .containsExactly(Arg.None.NONE, new Arg.Ref(graph.ops().getLast().result()));
    assertThat(graph.ops().getFirst().notes().before())
        .containsExactly("# No stacktrace found for following nodes");
    assertThat(graph.ops().getLast().notes().before())
        .containsExactly("", "# recompute: MUST_SAVE File: a.py:1 in f, code: y = (x");
  }

  @Test
  void readsSignaturesThatDeclareTheirParametersBelow() {
    var graph =
        FxTexts.graph(
            """
            class GraphModule(torch.nn.Module):
                def forward(self, args_0):
                    y: "f32[3][1]cpu"; x: "f32[4][1]cpu"  # the first

                    x, y, = fx_pytree.tree_flatten_spec(([args_0], {}), self._in_spec)
                    a: "f32[4][1]cpu" = torch.ops.aten.neg.default(x);  x = None
                    return pytree.tree_unflatten((a, y), self._out_spec)
            """);
    assertThat(graph.inputs())
        .extracting(v -> v.name() + ": " + v.type())
        .containsExactly("x: f32[4]", "y: f32[3]");
    assertThat(graph.outputs())
        .containsExactly(
            new Arg.Ref(graph.ops().getFirst().result()), new Arg.Ref(graph.inputs().getLast()));
  }

  @Test
  void readsTypesWithoutQuotes() {
    var graph =
        FxTexts.graph(
            """
            def forward(self, s: Sym(s0), x: f32[s0, 4][4, 1], y: f32[]):
                a: f32[s0, 4][4, 1] = torch.ops.aten.mul.Tensor(x, y);  x = y = None
                return (a,)
            """,
            ImmutableMap.of("s0", 3L));
    assertThat(graph.inputs())
        .extracting(v -> v.type().toString())
        .containsExactly("int", "f32[3, 4]", "f32[]");
  }

  @Test
  void aListOfResultsCanBeUsedWhole() {
    var graph =
        FxTexts.graph(
            FxTexts.listing(
                X,
                """
                split = torch.ops.aten.split.Tensor(x, 4)
                getitem: "f32[4, 4][4, 1]cuda:0" = split[0]
                cat: "f32[8, 4][4, 1]cuda:0" = torch.ops.aten.cat.default(split);  split = None
                return (cat, getitem)
                """));
    var split = graph.ops().getFirst().results();
    assertThat(names(split)).containsExactly("getitem", "");
    assertThat(graph.ops().getLast().arg("tensors"))
        .isEqualTo(
            new Arg.Seq(ImmutableList.of(new Arg.Ref(split.get(0)), new Arg.Ref(split.get(1)))));
  }

  @Test
  void severalListsOfResultsAreAsLongAsTheirArguments() {
    var graph =
        FxTexts.graph(
            FxTexts.listing(
                X,
                """
                step: "f32[][]cuda:0" = torch.ops.aten.full.default([], 1.0)
                op = torch.ops.aten._fused_adam.default([x, x], [x, x], [x, x], [x, x], [], [step, step], \
                lr = 0.1, beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0, eps = 1e-08, \
                amsgrad = False, maximize = False)
                getitem = op[0]
                param: "f32[8, 4][4, 1]cuda:0" = getitem[1];  getitem = None
                getitem_1 = op[3];  op = None
                square: "f32[8, 4][4, 1]cuda:0" = getitem_1[0];  getitem_1 = None
                return (param, square)
                """));
    assertThat(names(graph.ops().getLast().results()))
        .containsExactly("", "param", "", "", "", "", "square", "");
  }

  @Test
  void resultsOfUnknownOpsKeepTheirPlace() {
    var graph =
        opaque(
            """
            op = torch.ops.my.op.default(x)
            third: "f32[2][1]cuda:0" = op[2]
            first: "f32[1][1]cuda:0" = op[0];  op = None
            return (third, first)
            """);
    var results = graph.ops().getFirst().results();
    assertThat(names(results)).containsExactly("first", "", "third");
    assertThat(results.get(1).type()).isEqualTo(NoneType.NONE);
    assertThat(graph.outputs())
        .containsExactly(new Arg.Ref(results.get(2)), new Arg.Ref(results.get(0)));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          getitem_1 = op[1]; getitem_2: "f32[4][1]cuda:0" = getitem_1[1]
          getitem_2: "f32[4][1]cuda:0" = op[1][1]
          """)
  void takesNestedResultsApart(String lines) {
    var graph =
        opaque(
            "op = torch.ops.my.op.default(x, [x])\n"
                + lines.replace("; ", "\n")
                + "\nreturn (getitem_2,)");
    assertThat(names(graph.ops().getFirst().results())).containsExactly("", "", "getitem_2");
  }

  @Test
  void unknownOpsNeedNotGiveAnything() {
    var graph = opaque("_check = torch.ops.my.check.default(x)\nreturn (x,)");
    assertThat(graph.ops().getFirst().results()).isEmpty();
    assertThat(graph.ops().getFirst().def().has(OpTrait.OPAQUE)).isTrue();

    var used = "a = torch.ops.my.op.default(x)\nb = torch.ops.my.op.default(a)\nreturn (b,)";
    assertThatThrownBy(() -> opaque(used))
        .hasMessageContaining("g.fx.txt:4:")
        .hasMessageContaining("error[missing-annotation]: 'a' has no type: its op is not known")
        .satisfies(FxFormsTest::hasOneError);
  }

  @Test
  void namesOfMadeUpParametersDoNotClash() {
    var graph =
        opaque("a: \"f32[2][1]cuda:0\" = torch.ops.my.op.default(x, arg0 = 1)\nreturn (a,)");
    assertThat(graph.ops().getFirst().arg("arg0")).isEqualTo(new Arg.Int(1));
    assertThat(graph.ops().getFirst().args().getFirst())
        .isEqualTo(new Arg.Ref(graph.inputs().getFirst()));
  }

  @Test
  void sizesAreComputedAndConditionsChecked() {
    var text =
        FxTexts.listing(
            DYNAMIC,
            """
            sym_size: "Sym(s77)" = torch.ops.aten.sym_size.int(x, 0)
            max_1: "Sym(Max(1, 2*s77))" = torch.sym_max(1, 2 * sym_size)
            ge: "Sym(s77 >= 2)" = sym_size >= 2
            odd: "Sym(And(s77 > 1, s77 < 9))" = torch.sym_and(ge, ge)
            _assert_scalar = torch.ops.aten._assert_scalar.default(ge, 'too small');  ge = None
            _assert_scalar_1 = torch.ops.aten._assert_scalar.default(odd, '?')
            v: "f32[2*s77, 2][2, 1]cuda:0" = torch.ops.aten.view.default(x, [max_1, -max_1 + 2 + 2 * s])
            return (v, max_1)
            """);
    var graph = FxTexts.graph(text, ImmutableMap.of("s77", 6L));
    assertThat(graph.ops()).hasSize(1);
    assertThat(graph.ops().getFirst().result().type()).hasToString("f32[12, 2]");
    assertThat(graph.ops().getFirst().arg("size"))
        .isEqualTo(new Arg.Seq(ImmutableList.of(new Arg.Int(12), new Arg.Int(2))));
    assertThat(graph.outputs().getLast()).isEqualTo(new Arg.Int(12));

    assertThatThrownBy(() -> FxTexts.graph(text, ImmutableMap.of("s77", 1L)))
        .hasMessageContaining("error[dynamic-size]: the graph's own condition does not hold")
        .hasMessageContaining("'too small'");
  }

  @Test
  void saysOnceWhichSizeIsMissing() {
    assertThatThrownBy(() -> FxTexts.graph(FxTexts.listing(DYNAMIC, "return (x, s)")))
        .hasMessageContaining("the size s77 has no value; input 's' provides it")
        .hasMessageContaining("--dim s77=128")
        .satisfies(FxFormsTest::hasOneError);
    var inType = FxTexts.listing(X + ", y: \"f32[2*s9][1]cuda:0\"", "return (y,)");
    assertThatThrownBy(() -> FxTexts.graph(inType))
        .hasMessageContaining("the size s9 has no value; input 'y' provides it");
    var number = FxTexts.listing(X + ", y: \"Sym(zf1)\"", "return (x,)");
    assertThatThrownBy(() -> FxTexts.graph(number))
        .hasMessageContaining("the float zf1 has no value; input 'y' provides it")
        .hasMessageContaining("--dim zf1=1");
  }

  @Test
  void inputsWithoutStridesAreTakenAsRowMajor() {
    var text = FxTexts.listing("x: \"f32[8, 4]\", y: \"f32[3]\"", "return (x, y)");
    var graph = FxTexts.read(text, 4, warnings::add).graphs().getFirst();
    assertThat(graph.inputs().getFirst().tensor().isContiguous()).isTrue();
    assertThat(warnings)
        .singleElement()
        .satisfies(w -> assertThat(w.code()).isEqualTo(DiagnosticCode.MISSING_ANNOTATION))
        .satisfies(w -> assertThat(w.hint()).contains("include_stride=True"));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          sub = self.subgraph_0                                     | unsupported   | this is a constant or a subgraph of the module
          a = torch.ops.higher_order.triton_kernel_wrapper_functional(kernel_idx = 0, kwargs = x) | unsupported | triton_kernel_wrapper_functional calls another graph
          a = torch.nn.functional.relu(x)                           | unsupported   | it calls Python functions, not operators
          a = x + 1                                                 | unsupported   | this is not a call of an operator
          a = x.sum()                                               | unsupported   | it calls Python functions
          a: "f32[]" = x[0]                                         | unknown-value | 'x' has no result [0]
          a: "f32[]" = q[0]                                         | unknown-value | 'q' is not defined above
          a = torch.ops.aten.split.Tensor(x, 4); b: "f32[4, 4][4, 1]" = a[2] | unknown-value | 'a' has no result [2]
          a = torch.ops.my.op.default(x); b: "f32[4]" = a[60000]    | bad-argument  | result 60000 is read
          a = torch.ops.aten.neg.default({1: 2})                    | bad-argument  | 'self' of aten::neg takes Tensor
          a = torch.ops.aten.rand.generator([4], generator=3)       | bad-argument  | 'generator' of aten::rand.generator takes Generator
          a = torch.ops.aten.neg.default(self.c)                    | unsupported   | 'self.c' is a constant of the module
          a: "f4e2m1fnx2[4][1]" = torch.ops.my.op.default(x)        | syntax        | element type f4e2m1fnx2 is not supported
          a: "f32[-4][1]" = torch.ops.my.op.default(x)              | syntax        | negative
          a: "f5e1[4][1]" = torch.ops.my.op.default(x)              | syntax        | 'f5e1' is not an element type
          a: "DTensor(f32[4], S(0))" = torch.ops.my.op.default(x)   | syntax        | is a tensor that several ranks hold
          a = torch.ops.symm_mem.nvshmem_put.default(x, 1)          | unsupported   | reads or writes a peer's tensor
          a = torch.ops.symm_mem.get_remote_tensors.default(x, '0') | unsupported   | reads or writes a peer's tensor
          a: "f32[4][1]" = torch.ops.aten.neg.de...                 | syntax        | the text is shortened here
          a: "f32[4" = torch.ops.my.op.default(x)                   | syntax        | not a type
          a = torch.ops.my.op.default(99999999999999999999)         | syntax        | does not fit 64 bits
          a = torch.ops.my.op.default(device(index=0))              | unsupported   | the device has no type
          """)
  void saysWhatCannotBeImported(String lines, String code, String message) {
    var text = FxTexts.listing(X, lines.replace("; ", "\n") + "\nreturn (x,)");
    assertThatThrownBy(() -> FxTexts.read(text, 4, warnings::add))
        .hasMessageContaining("error[" + code + "]")
        .hasMessageContaining(message);
  }

  @Test
  void namesTheStageOfAnEarlierGraphOnce() {
    var text =
        FxTexts.listing(
            "L_x_: \"f32[4]\"",
            """
            l_x_ = L_x_
            relu: "f32[4]" = torch.nn.functional.relu(l_x_);  l_x_ = None
            add: "f32[4]" = relu + 1;  relu = None
            return (add,)
            """);
    assertThatThrownBy(() -> FxTexts.graph(text))
        .hasMessageContaining("TORCH_LOGS=post_grad_graphs")
        .satisfies(FxFormsTest::hasOneError);
  }

  @Test
  void whatFollowsFromAnErrorIsNotReported() {
    var text =
        FxTexts.listing(
            X,
            """
            split = torch.ops.aten.split.Tensor(q, 4)
            getitem: "f32[4, 4][4, 1]cuda:0" = split[0]
            neg: "f32[4, 4][4, 1]cuda:0" = torch.ops.aten.neg.default(getitem)
            cat: "f32[8, 4][4, 1]cuda:0" = torch.ops.aten.cat.default([neg, split[1]])
            return (cat,)
            """);
    assertThatThrownBy(() -> FxTexts.graph(text))
        .hasMessageContaining("'q' is not defined above")
        .satisfies(FxFormsTest::hasOneError);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          all_gather_into_tensor.default(x, 4, '0')        | f32[32, 4][1, 32]
          reduce_scatter_tensor.default(x, 'sum', 4, '0')  | f32[2, 4][8, 1]
          all_to_all_single.default(x, [], [], '0')        | f32[8, 4][1, 8]
          all_reduce.default(x, 'sum', '0')                | f32[8, 4][8, 2]
          broadcast.default(x, 0, '0')                     | f32[8, 4][0, 1]
          """)
  void collectivesCannotWriteEveryLayout(String call, String type) {
    var text =
        FxTexts.listing(
            X,
            """
            c: "%scuda:0" = torch.ops._c10d_functional.%s
            w: "%scuda:0" = torch.ops._c10d_functional.wait_tensor.default(c)
            return (w,)
            """
                .formatted(type, call, type));
    assertThatThrownBy(() -> FxTexts.graph(text))
        .hasMessageContaining("annotation-mismatch")
        .hasMessageContaining("writes without gaps, row by row")
        .satisfies(FxFormsTest::hasOneError);
  }

  @Test
  void saysWhichSizesAreBoundsAndWhichAreNone() {
    var text =
        """
        class GraphModule(torch.nn.Module):
            def forward(self, s: "Sym(s77)", t: "Sym(s27)", x: "f32[s77, s27][s27, 1]cpu"):
                y: "f32[s77, s27][s27, 1]cpu" = torch.ops.aten.relu.default(x)
                return (y,)
        """;
    var warnings = new ArrayList<Diagnostic>();
    var options =
        new ImportOptions(
            "g",
            ImmutableList.of(),
            4,
            ImmutableMap.of("s27", 7L, "s9", 3L),
            ImmutableMap.of("s77", 64L),
            BuiltinOps.registry());
    var program = FxImporter.read(new SourceFile("g.fx.txt", text), options, warnings::add);
    assertThat(warnings.stream().map(Diagnostic::message))
        .containsExactly("no size has the name 's9'", "planned at the largest sizes: s77 = 64");
    assertThat(program.graphs().getFirst().notes().before())
        .containsExactly("# sizes: s27 = 7, s77 = 64 at most");
    assertThat(program.graphs().getFirst().inputs().get(2).tensor().size(0)).isEqualTo(64);
  }
}
