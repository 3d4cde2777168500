package dev.symplan.ir.graph;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import org.junit.jupiter.api.Test;

class RankNumbersTest {
  private static final Graph GRAPH =
      GraphParser.parse(
              new SourceFile(
                  "t.graph",
                  """
                  graph version 1
                  graph a(x: i32[4]) {
                    n: i32[] = symplan::rank_number([7, -1], dtype=torch.int32)
                    y = aten::add.Tensor(x, n)
                    return y
                  }
                  """))
          .graphs()
          .getFirst();

  @Test
  void isTheRanksOwnNumber() {
    var op = GRAPH.ops().getFirst();

    var own = RankNumbers.on(op, 1);

    assertThat(own.def().name()).hasToString("aten::full");
    assertThat(own.arg("fill_value").integer()).contains(-1L);
    assertThat(own.infer().getFirst().type()).isEqualTo(op.result().type());
    assertThat(own.results()).isEqualTo(op.results());
    assertThat(RankNumbers.on(GRAPH.ops().get(1), 1)).isSameAs(GRAPH.ops().get(1));
  }

  @Test
  void thereIsOneForEachRank() {
    var sink = new DiagnosticSink();
    RankNumbers.check(GRAPH, 2, sink);
    assertThat(sink.diagnostics()).isEmpty();

    RankNumbers.check(GRAPH, 3, sink);
    assertThat(sink.diagnostics())
        .singleElement()
        .satisfies(
            error -> {
              assertThat(error.message()).isEqualTo("'n' has 2 numbers, but there are 3 ranks");
              assertThat(error.span().line()).isEqualTo(3);
            });
  }
}
