package dev.symplan.planner.cost;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.machine.Target;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CostModelTest {
  private static final CostModel COSTS = new CostModel(Target.H200_X4);

  private static double micros(String text) {
    var graph =
        GraphParser.parse(new SourceFile("t.graph", "graph version 1\n" + text))
            .graphs()
            .getFirst();
    return COSTS.computeMicros(graph.ops().getLast());
  }

  /** The rest of the table is not read. */
  @ParameterizedTest
  @ValueSource(ints = {100, 100_000})
  void gathersCostTheirRows(int table) {
    double gathered =
        micros(
            """
            graph t(w: bf16[%s, 4096], i: i64[2048]) {
              e = aten::embedding(w, i)
              return e
            }
            """
                .formatted(table));
    assertThat(gathered)
        .isCloseTo(
            COSTS.kernelMicros(Math.min(table, 2048) * 8192L + 2048 * 8L + 2048 * 8192L),
            Offset.offset(1e-9));
  }

  @Test
  void opsCostWhatTheyReadAndWrite() {
    assertThat(
            micros(
                """
                graph t(x: f32[1024, 1024], y: f32[1024, 1024]) {
                  z = aten::add.Tensor(x, y)
                  return z
                }
                """))
        .isCloseTo(COSTS.kernelMicros(3L << 22), Offset.offset(1e-9));
  }
}
