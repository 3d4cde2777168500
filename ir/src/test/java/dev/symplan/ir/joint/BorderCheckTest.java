package dev.symplan.ir.joint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Borders that were written by hand. */
class BorderCheckTest {
  private static String check(String text) {
    var sink = new DiagnosticSink();
    var program = GraphParser.parse(new SourceFile("t.graph", "graph version 1\n" + text));
    BorderCheck.check(program.graphs(), sink);
    return sink.diagnostics().toString();
  }

  private static String graph(String border) {
    return """
    graph a(x: f32[4], y: f32[4]) {
      u = aten::neg(x)
      %s
      v = aten::mul.Tensor(u, y)
      return u, v
    }
    """
        .formatted(border);
  }

  @Test
  void bordersBehindWhatAGraphTakesAndGivesAreRight() {
    assertThat(check(graph("symplan::border(\"b\", 1, 1)"))).isEqualTo("[]");
    assertThat(check(graph("symplan::border(\"b\", 2, 0)"))).isEqualTo("[]");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "'a', 1, 1 | two graphs of the program are called 'a'",
        "'b', 0, 1 | 'x' is an input of graph 'b', which runs later",
        "'b', 3, 1 | the borders of graph 'b' are not in order",
        "'b', 1, 2 | graph 'a' gives 'v', which a later graph makes",
      },
      quoteCharacter = '`')
  void refusesBordersThatDoNotFit(String args, String message) {
    assertThat(check(graph("symplan::border(%s)".formatted(args.replace('\'', '"')))))
        .contains("bad-ties", message, "t.graph:");
  }

  @Test
  void refusesRanksThatBeginOtherGraphs() {
    var first = graph("symplan::border(\"b\", 1, 1)").replace(") {", ") ranks [0] {");
    var second = graph("symplan::border(\"c\", 1, 1)").replace(") {", ") ranks [1] {");
    assertThat(check(first + second))
        .contains(
            "ranks-disagree", "the borders between the graphs of the program differ between ranks");
    assertThat(check(first + second.replace("\"c\"", "\"b\""))).isEqualTo("[]");
  }
}
