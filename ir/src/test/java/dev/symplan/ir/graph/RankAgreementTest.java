package dev.symplan.ir.graph;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RankAgreementTest {
  private static final String GROUPS =
      """
      graph version 1

      group all = [0, 1, 2, 3]
      group pair = [0, 1], [2, 3]
      group row = [0, 1], [2, 3]

      """;

  private static final String REDUCE =
      """
      r = _c10d_functional::all_reduce(x, "sum", "pair")
      return r
      """;

  private static List<Diagnostic> check(String text) {
    var sink = new DiagnosticSink();
    RankAgreement.check(GraphParser.parse(new SourceFile("p.graph", GROUPS + text)), sink);
    assertThat(sink.diagnostics()).allMatch(d -> d.code() == DiagnosticCode.RANKS_DISAGREE);
    return sink.diagnostics();
  }

  private static String graph(String ranks, String statements) {
    return "graph g(x: f32[8, 4], y: f32[8, 4]) ranks %s {\n%s}\n\n"
        .formatted(ranks, statements.indent(2));
  }

  @Test
  void localCodeAndNamesOfGroupsMayDiffer() {
    var other =
        """
        n = aten::neg(y)
        r = _c10d_functional::all_reduce(n, "sum", "row")
        w = _c10d_functional::wait_tensor(r)
        return w
        """;
    assertThat(check(graph("[0, 1]", REDUCE) + graph("[2, 3]", other))).isEmpty();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          (x, "sum"       | (x, "max"          | collective 0 is _c10d_functional::all_reduce(f32[8, 4], max
          all_reduce(x    | all_reduce_(x      | collective 0 is _c10d_functional::all_reduce_(f32[8, 4], sum
          """)
  void findsWhatDiffers(String before, String after, String message) {
    assertThat(check(graph("[0, 2]", REDUCE) + graph("[1, 3]", REDUCE.replace(before, after))))
        .singleElement()
        .satisfies(d -> assertThat(d.message()).contains(message))
        .satisfies(d -> assertThat(d.span().line()).isGreaterThan(11))
        .satisfies(d -> assertThat(d.notes().getFirst()).contains("p.graph:"));
  }

  @Test
  void findsACollectiveThatOneRankLacks() {
    var more =
        REDUCE.replace(
            "return r", "s = _c10d_functional::all_reduce(r, \"sum\", \"pair\")\nreturn s");
    for (var text :
        List.of(
            graph("[0, 2]", REDUCE) + graph("[1, 3]", more),
            graph("[0, 2]", more) + graph("[1, 3]", REDUCE))) {
      assertThat(check(text))
          .singleElement()
          .satisfies(
              d ->
                  assertThat(d.message())
                      .matches(
                          "ranks of group 'pair' have . collectives? in it here, but . on other"
                              + " ranks"));
    }
  }

  private static final String STAGE =
      """
      a = _c10d_functional::all_reduce(x, "sum", "pair")
      b = _c10d_functional::all_reduce(y, "max", "pair")
      c = _c10d_functional::all_reduce(b, "sum", "all")
      return c
      """;

  /** Stages of a pipeline may do as they like by themselves, but not where they meet. */
  @Test
  void ranksThatDoNotMeetMayHaveOtherCollectives() {
    var other =
        """
        c = _c10d_functional::all_reduce(x, "sum", "all")
        d = _c10d_functional::all_gather_into_tensor(c, 2, "row")
        return c
        """;
    assertThat(check(graph("[0, 1]", STAGE) + graph("[2, 3]", other))).isEmpty();
    assertThat(check(graph("[0, 1]", STAGE) + graph("[2, 3]", other.replace("sum", "avg"))))
        .singleElement()
        .satisfies(d -> assertThat(d.message()).startsWith("collective 0 is").contains(", avg, "));
    assertThat(check(graph("[0, 1]", STAGE) + graph("[2, 3]", "return x")))
        .singleElement()
        .satisfies(
            d ->
                assertThat(d.message())
                    .isEqualTo(
                        "ranks of group 'all' have 0 collectives in it here, but 1 on other"
                            + " ranks"));
  }

  /** Ranks 0 and 1 come to the first group first, 2 and 3 to the second. */
  @Test
  void findsRanksThatWaitForEachOther() {
    var groups = "group left = [0, 2], [1, 3]\ngroup right = [0, 3], [1, 2]\n";
    var there =
        """
        a = _c10d_functional::all_reduce(x, "sum", "left")
        b = _c10d_functional::all_reduce(x, "sum", "right")
        return a
        """;
    var back =
        """
        b = _c10d_functional::all_reduce(x, "sum", "right")
        a = _c10d_functional::all_reduce(x, "sum", "left")
        return a
        """;
    assertThat(check(groups + graph("[0, 1]", there) + graph("[2, 3]", there))).isEmpty();
    assertThat(check(groups + graph("[0, 1]", there) + graph("[2, 3]", back)))
        .singleElement()
        .satisfies(
            d ->
                assertThat(d.message())
                    .startsWith("ranks wait for each other: some wait here, in a"))
        .satisfies(d -> assertThat(d.notes()).hasSize(1));
  }

  /** One after the other, several graphs have borders at the same inputs and outputs. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          f32[8, 5]                     | true
          f32[0, 4]                     | true
          f32[8]                        | false
          f16[8, 4]                     | false
          float                         | false
          f32[8, 4], z: f32[4]          | false
          """)
  void inputsOfSeveralGraphsMayDifferInSizeOnly(String type, boolean right) {
    var joint = "symplan::border(\"h\", 1, 0)\n" + REDUCE;
    var other = graph("[2, 3]", joint).replace("y: f32[8, 4]", "y: " + type);
    var found = check(graph("[0, 1]", joint) + other);
    assertThat(found.stream().map(Diagnostic::message).toList())
        .isEqualTo(right ? List.of() : List.of("the ranks' inputs differ"));
  }

  @Test
  void outputsOfSeveralGraphsMayDifferInSizeOnly() {
    var joint = "symplan::border(\"h\", 1, 0)\n" + REDUCE;
    var larger = joint.replace("return r", "c = aten::cat([r, r])\nreturn c");
    assertThat(check(graph("[0, 1]", joint) + graph("[2, 3]", larger))).isEmpty();
    var more = joint.replace("return r", "return r, None");
    assertThat(check(graph("[0, 1]", joint) + graph("[2, 3]", more)))
        .extracting(Diagnostic::message)
        .containsExactly("the ranks' outputs differ");
  }

  @Test
  void inputsAndOutputsOfOneGraphMayDiffer() {
    var other =
        """
        graph g(tokens: i64[7], x: f32[8, 4]) ranks [2, 3] {
          r = _c10d_functional::all_reduce(x, "sum", "pair")
          return r, tokens, None
        }
        """;
    assertThat(check(graph("[0, 1]", REDUCE) + other)).isEmpty();
  }

  private static String exchange(String taken, String sent) {
    return """
    r = _c10d_functional::all_to_all_single(x, %s, %s, "pair")
    o = aten::sum(r)
    return o
    """
        .formatted(taken, sent);
  }

  @Test
  void whatOneSendsTheOtherTakes() {
    // Ranks 0 and 2 keep 5 rows and send 3; ranks 1 and 3 send 2 and keep 6.
    var first = graph("[0, 2]", exchange("[5, 2]", "[5, 3]"));
    var second = graph("[1, 3]", exchange("[3, 6]", "[2, 6]"));
    assertThat(check(first + second)).isEmpty();

    var wrong = graph("[1, 3]", exchange("[4, 6]", "[2, 6]"));
    assertThat(check(first + wrong))
        .singleElement()
        .satisfies(
            d ->
                assertThat(d.message())
                    .isEqualTo("rank 1 takes 4 rows from rank 0, which sends it 3"));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          [4, 4] | [4, 4] | true
          []     | []     | true
          []     | [4, 4] | true
          [5, 3] | [5, 3] | false
          [5, 3] | []     | false
          [3, 5] | [4, 4] | false
          """)
  void ranksOfOneGraphSendEachOtherTheSame(String taken, String sent, boolean right) {
    var text = "graph g(x: f32[8, 4]) {\n%s}\n".formatted(exchange(taken, sent).indent(2));
    assertThat(check(text).isEmpty()).isEqualTo(right);
  }
}
