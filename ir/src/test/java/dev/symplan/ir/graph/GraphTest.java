package dev.symplan.ir.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import org.junit.jupiter.api.Test;

final class GraphTest {
  private static final Graph GRAPH =
      GraphParser.parse(
              new SourceFile(
                  "test.graph",
                  """
                  graph version 1
                  graph main(x: f32[4, 2]) {
                    unread = aten::neg(x)
                    turned = aten::t(x)
                    y = aten::relu(turned)
                    return y
                  }
                  """))
          .graphs()
          .getFirst();

  @Test
  void graphsWithoutGapsAreNumbered() {
    assertThat(GRAPH.numbered()).isSameAs(GRAPH);
  }

  @Test
  void numberingClosesGaps() {
    var some = GRAPH.withOps(GRAPH.ops().subList(1, 3));
    assertThat(some.values()).extracting(Value::id).containsExactly(0, 2, 3);
    var numbered = some.numbered();
    assertThat(numbered.valueCount()).isEqualTo(3);
    assertThat(numbered.values()).extracting(Value::id).containsExactly(0, 1, 2);
    assertThat(numbered.values())
        .extracting(Value::name)
        .containsExactlyElementsOf(some.values().stream().map(Value::name).toList());
    assertThat(numbered.ops().getLast().operands()).containsExactly(numbered.values().get(1));
    assertThat(numbered.outputValues()).containsExactly(numbered.values().get(2));
    assertThat(numbered.ops().getFirst().infer())
        .isEqualTo(numbered.ops().getFirst().def().infer(numbered.ops().getFirst().args()).get());
  }

  @Test
  void twoValuesCannotHaveTheSameId() {
    var ops = ImmutableList.of(GRAPH.ops().getFirst(), GRAPH.ops().getFirst());
    assertThatThrownBy(() -> GRAPH.withOps(ops))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("the id 1 of 'unread' is taken");
  }
}
