package dev.symplan.ir.joint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.GraphPrinter;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class JointGraphTest {
  private static final String FORWARD =
      """
      group g = [0, 1]
      graph forward(primals_1: f32[4, 8], primals_2: f32[1, 8][16, 1]) {
        w = _c10d_functional::all_gather_into_tensor(primals_1, 2, "g")
        full = _c10d_functional::wait_tensor(w)
        t = aten::t(full)
        y = aten::mm(primals_2, t)
        row = aten::relu(y)
        return row, row, full, primals_2
      }
      """;

  private static final String BACKWARD =
      """
      group g = [0, 1]
      graph backward(row: f32[1, 8], weight: f32[8, 8], primals_2: f32[1, 8], tangents_1: f32[1, 8]) {
        y = aten::mul.Tensor(tangents_1, row)
        t = aten::t(y)
        d = aten::mm(t, primals_2)
        s = _c10d_functional::reduce_scatter_tensor(d, "sum", 2, "g")
        grad = _c10d_functional::wait_tensor(s)
        x = aten::mm(y, weight)
        return grad, x
      }
      """;

  private final List<Diagnostic> warnings = new ArrayList<>();

  private static Program program(String text) {
    return GraphParser.parse(new SourceFile("t.graph", "graph version 1\n" + text));
  }

  private Program join(Optional<ImmutableList<Tie>> ties, String... texts) {
    var programs = ImmutableList.<Program>builder();
    for (var text : texts) {
      programs.add(program(text));
    }
    return JointGraph.of(programs.build(), ties, warnings::add);
  }

  private static Tie tie(int from, String value, int to, String input, boolean kept) {
    return new Tie(from, value, to, input, kept, false, Span.NONE);
  }

  @Test
  void backwardTakesWhatForwardSaved() {
    var joint = join(Optional.empty(), FORWARD, BACKWARD);
    Golden.check("joint/training.graph", GraphPrinter.print(joint));
    assertThat(warnings).isEmpty();
    var again = new SourceFile("again.graph", GraphPrinter.print(joint));
    assertThat(GraphParser.parse(again).graphs().getFirst().ops())
        .hasSameSizeAs(joint.graphs().getFirst().ops());
  }

  @Test
  void graphsOfOneFileAreTakenInTheirOrder() {
    var one =
        join(
            Optional.empty(),
            FORWARD + BACKWARD.lines().skip(1).reduce("", (a, b) -> a + b + "\n"));
    assertThat(GraphPrinter.print(one))
        .isEqualTo(GraphPrinter.print(join(Optional.empty(), FORWARD, BACKWARD)));
  }

  @Test
  void outputsTieInputsOfTheirName() {
    var joint =
        join(
            Optional.empty(),
            "graph a(x: f32[4]) {\n  y = aten::neg(x)\n  z = aten::exp(x)\n  return y, z\n}\n",
            "graph b(x: f32[4], y: f32[4]) {\n  z = aten::mul.Tensor(x, y)\n  return z\n}\n");
    Golden.check("joint/names.graph", GraphPrinter.print(joint));
  }

  @Test
  void tiesMayKeepAnOutputAndShareAnInput() {
    var ties = ImmutableList.of(tie(0, "y", 1, "v", true), tie(0, "w", 1, "u", false));
    var joint =
        join(
            Optional.of(ties),
            "graph a(x: f32[4], w: f32[4]) {\n  y = aten::mul.Tensor(x, w)\n  return y\n}\n",
            "graph b(v: f32[4], u: f32[4]) {\n  z = aten::mul.Tensor(v, u)\n  return z\n}\n");
    Golden.check("joint/kept.graph", GraphPrinter.print(joint));
  }

  @Test
  void eachListOfRanksHasItsOwn() {
    var joint =
        join(
            Optional.empty(),
            "graph a(x: f32[4]) {\n  y = aten::neg(x)\n  return y\n}\n",
            "graph b(y: f32[4]) ranks [0] {\n  z = aten::exp(y)\n  return z\n}\n"
                + "graph b(y: f32[4]) ranks [1] {\n  z = aten::neg(y)\n  return z\n}\n");
    assertThat(joint.graphs()).hasSize(2);
    Golden.check("joint/ranks.graph", GraphPrinter.print(joint));
  }

  @Test
  void graphsWithoutTiesAreWarnedOf() {
    var text = "graph a(x: f32[4]) {\n  y = aten::neg(x)\n  return y\n}\n";
    join(Optional.empty(), text, text.replace("a(", "b("));
    assertThat(warnings)
        .singleElement()
        .asString()
        .contains("no input of this graph is tied to an earlier graph", "--ties FILE");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "0 | nothing | 1 | v | graph 0 has no output or input 'nothing'",
        "0 | y | 1 | nothing | graph 1 has no input 'nothing'",
        "0 | y | 2 | v | graph 2 does not exist",
        "0 | y | 1 | short | 'y' is f32[4] in graph 0, but 'short' is f32[3] in graph 1",
        "0 | y | 1 | turned | 'y' is f32[4] in graph 0, but 'turned' is f32[4][2] in graph 1",
        "0 | y | 1 | kept | 'y' is f32[4] in graph 0, but 'kept' is f32[4] @symm in graph 1",
      })
  void refusesTiesThatDoNotFit(int from, String value, int to, String input, String message) {
    assertThatThrownBy(
            () ->
                join(
                    Optional.of(ImmutableList.of(tie(from, value, to, input, false))),
                    "graph a(x: f32[4]) {\n  y = aten::neg(x)\n  return y\n}\n",
                    "graph b(v: f32[4], short: f32[3], turned: f32[4][2], kept: f32[4] @symm) {\n"
                        + "  return v\n}\n"))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("bad-ties")
        .hasMessageContaining(message);
  }

  @Test
  void refusesAnInputThatIsTiedTwice() {
    var twice = ImmutableList.of(tie(0, "y", 1, "v", false), tie(0, "x", 1, "v", false));
    assertThatThrownBy(
            () ->
                join(
                    Optional.of(twice),
                    "graph a(x: f32[4]) {\n  y = aten::neg(x)\n  return y\n}\n",
                    "graph b(v: f32[4]) {\n  return v\n}\n"))
        .hasMessageContaining("input 'v' of graph 1 is tied twice");
  }

  @Test
  void refusesABackwardOfAnotherForward() {
    assertThatThrownBy(
            () ->
                join(
                    Optional.empty(),
                    FORWARD.replace("row, row, full", "row, full, row"),
                    BACKWARD))
        .hasMessageContaining("saves 'full' in the place of 'row', and the latter in another one");
    assertThatThrownBy(
            () -> join(Optional.empty(), FORWARD.replace("row, row, full", "row, y, y"), BACKWARD))
        .hasMessageContaining("'y' is f32[1, 8] in graph 0, but 'weight' is f32[8, 8] in graph 1")
        .hasMessageContaining("are these graphs of one capture?");
    assertThatThrownBy(
            () -> join(Optional.empty(), FORWARD.replace("row, row, full, ", ""), BACKWARD))
        .hasMessageContaining("takes 3 tensors besides tangents, but the graph before it gives 1");
  }

  private static final String CONVOLUTION =
      """
      graph forward(primals_1: f32[2, 3, 4, 4], primals_2: f32[2, 3, 1, 4]) {
        relu = aten::relu(primals_1)
        y = aten::add.Tensor(relu, primals_2)
        return y, primals_2, relu
      }
      """;

  private static final String CHANNELS_LAST =
      """
      graph backward(primals_2: f32[2, 3, 1, 4][12, 4, 16, 1], relu: f32[2, 3, 4, 4][48, 1, 12, 3], tangents_1: f32[2, 3, 4, 4]) {
        m = aten::mul.Tensor(tangents_1, primals_2)
        t = aten::view(relu, [2, 3, 4, 4])
        d = aten::mul.Tensor(m, t)
        return d
      }
      """;

  /** Inductor saves tensors channels-last, which only the backward graph shows. */
  @Test
  void savedTensorsOfOtherStridesAreCopied() {
    var joint = join(Optional.empty(), CONVOLUTION, CHANNELS_LAST);
    Golden.check("joint/strides.graph", GraphPrinter.print(joint));
  }

  @Test
  void refusesOtherStridesWhereACopyCouldBeWrong() {
    assertThatThrownBy(
            () -> join(Optional.empty(), CONVOLUTION, CHANNELS_LAST.replace("relu", "convolution")))
        .hasMessageContaining("bad-ties")
        .hasMessageContaining(
            "'relu' is f32[2, 3, 4, 4] in graph 0, but 'convolution' is"
                + " f32[2, 3, 4, 4][48, 1, 12, 3] in graph 1")
        .hasMessageContaining(
            "with \"copy\": true in --ties FILE, graph 1 gets a copy with its own strides");
    assertThatThrownBy(
            () ->
                join(
                    Optional.empty(),
                    CONVOLUTION,
                    CHANNELS_LAST.replace("[48, 1, 12, 3]", "[48, 0, 12, 3]")))
        .hasMessageContaining("no copy can have those of 'relu', as its elements overlap");
    for (var written : List.of("relu", "t", "u")) {
      var writes =
          CHANNELS_LAST.replace(
              "  d =",
              "  u = aten::select.int(t, 0, 1)\n  w = aten::relu_(%s)\n  d =".formatted(written));
      assertThatThrownBy(() -> join(Optional.empty(), CONVOLUTION, writes))
          .hasMessageContaining(
              "'w' writes into 'relu', but graph 1 has other strides for it than graph 0");
    }
    var elsewhere = CHANNELS_LAST.replace("  d =", "  w = aten::relu_(m)\n  d =");
    assertThat(join(Optional.empty(), CONVOLUTION, elsewhere).graphs()).hasSize(1);
  }

  @Test
  void tiesOfAFileAllowCopies() {
    var a = "graph a(x: f32[4, 2]) {\n  y = aten::neg(x)\n  return y\n}\n";
    var b = "graph b(v: f32[4, 2][1, 4]) {\n  z = aten::exp(v)\n  return z\n}\n";
    var one = new Tie(0, "y", 1, "v", false, false, Span.NONE);
    assertThatThrownBy(() -> join(Optional.of(ImmutableList.of(one)), a, b))
        .hasMessageContaining("the strides differ, so it is not one tensor");
    var copy = new Tie(0, "y", 1, "v", false, true, Span.NONE);
    assertThat(GraphPrinter.print(join(Optional.of(ImmutableList.of(copy)), a, b)))
        .contains("v: f32[4, 2][1, 4] = aten::clone(y)");
  }

  /** AOTAutograd puts sizes before saved tensors in the backward graph, and after them before. */
  @Test
  void sizesAndStatesOfGeneratorsAreNotSaved() {
    var joint =
        join(
            Optional.empty(),
            """
            graph forward(primals_1: int, primals_2: f32[4], fwd_rng_state_0: None) {
              r = aten::rand.generator([4], generator="rng_state_0")
              y = aten::mul.Tensor(primals_2, r)
              return y, y, primals_2, 4
            }
            """,
            """
            graph backward(primals_1: int, y: f32[4], primals_2: f32[4], tangents_1: f32[4], bwd_rng_state_0: None, bwd_seed_0: i64[], bwd_base_offset_0: i64[]) {
              r = aten::rand.generator([4], generator="rng_state_0")
              m = aten::mul.Tensor(tangents_1, r)
              d = aten::mul.Tensor(m, primals_2)
              e = aten::mul.Tensor(d, y)
              return e
            }
            """);
    Golden.check("joint/states.graph", GraphPrinter.print(joint));
  }

  @Test
  void refusesABackwardThatComesFirst() {
    assertThatThrownBy(() -> join(Optional.empty(), BACKWARD, FORWARD))
        .hasMessageContaining("this is a backward graph, but there is no graph before it");
  }

  @Test
  void graphsHaveNamesOfTheirOwn() {
    var text = "graph a(x: f32[4]) {\n  y = aten::neg(x)\n  return y\n}\n";
    var joint = join(Optional.empty(), text, text, text);
    assertThat(ProgramGraph.allOf(joint.graphs().getFirst()))
        .extracting(ProgramGraph::name)
        .containsExactly("a", "a_1", "a_2");
    assertThat(ProgramGraph.allOf(joint.graphs().getFirst()))
        .extracting(ProgramGraph::firstOutput)
        .containsExactly(0, 1, 2);
  }

  @Test
  void refusesGraphsThatWereJoinedBefore() {
    var joint = GraphPrinter.print(join(Optional.empty(), FORWARD, BACKWARD));
    var again = joint.substring(joint.indexOf("group"));
    assertThatThrownBy(() -> join(Optional.empty(), again, BACKWARD))
        .hasMessageContaining("graph 'forward' consists of several graphs already");
  }

  @Test
  void refusesASingleGraph() {
    assertThatThrownBy(() -> join(Optional.empty(), FORWARD))
        .hasMessageContaining("there is only one graph");
  }

  @Test
  void refusesGroupsAndDeclarationsThatDiffer() {
    assertThatThrownBy(() -> join(Optional.empty(), FORWARD, BACKWARD.replace("[0, 1]", "[1, 0]")))
        .hasMessageContaining("group 'g' has the ranks");
  }
}
