package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.DType;
import dev.symplan.ir.op.OpDef;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.tensor.Rounding;
import dev.symplan.runtime.tensor.TensorDiff;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Differences that two correct runs may have, and that end at a mask. */
class ComparableResultsTest {
  @Test
  void someResultsAreLeftUnwritten() {
    var graph =
        Programs.plan(
                """
                graph g(q: f32[1, 2, 32, 8]) {
                  o, l, s, p = aten::_scaled_dot_product_efficient_attention(q, q, q, None, True)
                  e = aten::empty.memory_format([3])
                  z = aten::zeros([3])
                  v = aten::view(e, [3, 1])
                  return o, s, p, e, z, q
                }
                """)
            .forRank(0)
            .graph();
    assertThat(graph.outputs()).hasSize(6);
    for (int i : new int[] {1, 2, 3}) {
      assertThat(graph.unspecifiedBy(i)).as("output %s", i).isPresent();
    }
    for (int i : new int[] {0, 4, 5}) {
      assertThat(graph.unspecifiedBy(i)).as("output %s", i).isEmpty();
    }
    assertThat(graph.unspecifiedBy(3).map(op -> op.def()).map(OpDef::name).map(Object::toString))
        .isEqualTo(Optional.of("aten::empty.memory_format"));
  }

  @Test
  void whatWasOnceShortIsNoMoreExactForBeingWide() {
    var graph =
        Programs.plan(
                """
                graph g(x: bf16[4], w: f32[4]) {
                  exact = prims::convert_element_type(x, torch.float32)
                  rounded = aten::add.Tensor(x, x)
                  wide = prims::convert_element_type(rounded, torch.float32)
                  sum = aten::add.Tensor(wide, w)
                  seen = aten::view(sum, [2, 2])
                  return exact, rounded, wide, seen, x
                }
                """)
            .forRank(0)
            .graph();
    var rounding = Rounding.of(graph);
    assertThat(graph.outputs().stream().map(rounding::ofOutput))
        .containsExactly(DType.F32, DType.BF16, DType.BF16, DType.BF16, DType.F64);
    var diff = new TensorDiff(DType.F32, 1, 1e-3, 1, 1);
    assertThat(diff.isWithin(DType.BF16)).isTrue();
    assertThat(diff.isWithin(DType.F32)).isFalse();
    assertThat(new TensorDiff(DType.I64, 1, 1e-9, 1, 1).isWithin(DType.BF16)).isFalse();
  }

  @Test
  void putsWhereAMaskIsTrue() {
    var plan =
        Programs.plan(
            """
            graph g(x: f32[2, 3], m: b8[2, 3], rows: b8[2], one: f32[], two: f32[2]) {
              a = aten::index_put(x, [m], one)
              b = aten::index_put(x, [m], two, True)
              c = aten::index_put(x, [rows], one)
              return a, b, c
            }
            """);
    try (var session = Session.open(plan, new HostBackend())) {
      for (int i = 0; i < 6; i++) {
        session.input(0, "x").set(i, i / 3, i % 3);
        session.input(0, "m").set(i == 1 || i == 5 ? 1 : 0, i / 3, i % 3);
      }
      session.input(0, "rows").set(0, 0);
      session.input(0, "rows").set(1, 1);
      session.input(0, "one").set(-1);
      session.input(0, "two").set(10, 0);
      session.input(0, "two").set(20, 1);
      session.run();
      assertThat(elements(session, 0)).containsExactly(0, -1, 2, 3, 4, -1);
      assertThat(elements(session, 1)).containsExactly(0, 11, 2, 3, 4, 25);
      assertThat(elements(session, 2)).containsExactly(0, 1, 2, -1, -1, -1);

      session.input(0, "m").set(1, 0, 0);
      assertThatThrownBy(session::run)
          .isInstanceOf(RunException.class)
          .hasMessageContaining("f32[2] do not fit the indexed elements");
    }
  }

  private static double[] elements(Session session, int output) {
    var tensor = session.output(0, output).orElseThrow();
    var elements = new double[6];
    for (int i = 0; i < 6; i++) {
      elements[i] = tensor.get(i / 3, i % 3);
    }
    return elements;
  }
}
