package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.check.Reference;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Ops that write in place, give lists or are asked for layouts of their own, in planned memory. */
class SessionOpsTest {
  private static final CompileOptions ONE_RANK = CompileOptions.DEFAULT.withRanks(1);

  /** {@return the outputs, which are those of evaluation without a plan} */
  private static List<List<Double>> run(String graph) {
    var plan = Programs.plan(graph, ONE_RANK);
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillInputs(session, new Random(1));
      for (int i = 0; i < session.inputNames().size(); i++) {
        session.input(0, i).ifPresent(SessionOpsTest::count);
      }
      var expected = Reference.evaluate(plan, session).getFirst();
      session.run();
      var outputs = new ArrayList<List<Double>>();
      for (int i = 0; i < session.outputCount(); i++) {
        var output = session.output(0, i).orElseThrow();
        assertThat(Programs.same(output, expected.get(i).orElseThrow())).isTrue();
        outputs.add(elements(output));
      }
      return outputs;
    }
  }

  /** Fills a tensor with 1, 2, 3 … */
  private static void count(HostTensor tensor) {
    var flat = Programs.flat(tensor);
    for (long i = 0; i < flat.type().numel(); i++) {
      flat.set(i + 1, i);
    }
  }

  private static List<Double> elements(HostTensor tensor) {
    var flat = Programs.flat(tensor.contiguous());
    var elements = new ArrayList<Double>();
    for (long i = 0; i < flat.type().numel(); i++) {
      elements.add(flat.get(i));
    }
    return elements;
  }

  @Test
  void formsInPlaceWriteTheirOperand() {
    assertThat(
            run(
                """
                graph g(x: f32[3], y: f32[3]) {
                  c = aten::clone(x)
                  d = aten::add_.Tensor(c, y, alpha=2)
                  e = aten::mul_.Scalar(d, 2.0)
                  s = aten::add.Tensor(c, x)
                  return c, e, s
                }
                """))
        .containsExactly(
            List.of(6.0, 12.0, 18.0), List.of(6.0, 12.0, 18.0), List.of(7.0, 14.0, 21.0));
  }

  /** As in PyTorch, where 0.5 is true. */
  @Test
  void factorsOfBoolsAreBools() {
    assertThat(
            run(
                """
                graph g(y: b8[2]) {
                  x = aten::zeros([3], dtype=torch.bool)
                  i = aten::arange(2)
                  a = aten::index_add(x, 0, i, y, alpha=0.5)
                  b = aten::index_add(x, 0, i, y, alpha=0)
                  return a, b
                }
                """))
        .containsExactly(List.of(1.0, 1.0, 0.0), List.of(0.0, 0.0, 0.0));
  }

  @Test
  void emptyTensorsAreConcatenatedAlongAnyDimension() {
    assertThat(
            run(
                """
                graph g(x: f32[0], y: f32[1, 2]) {
                  a = aten::cat([x], 1)
                  b = aten::cat([x, y, x], 1)
                  return a, b
                }
                """))
        .containsExactly(List.of(), List.of(1.0, 2.0));
  }

  @Test
  void integersStayExactBesideFloats() {
    assertThat(
            run(
                """
                graph g(x: f32[2]) {
                  i = aten::full([2], 16777217, dtype=torch.int64)
                  k = aten::full([2], False, dtype=torch.bool)
                  l = aten::full([2], True, dtype=torch.bool)
                  v = aten::full([], 2.5)
                  a = aten::masked_fill.Scalar(i, k, 2.5)
                  b = aten::masked_fill.Scalar(i, l, -2.5)
                  c = aten::masked_fill.Tensor(i, k, v)
                  d = aten::masked_fill.Tensor(i, l, v)
                  e = aten::masked_fill.Scalar(k, l, 0.5)
                  f = aten::fill.Scalar(i, -2.5)
                  return a, b, c, d, e, f
                }
                """))
        .containsExactly(
            List.of(16777217.0, 16777217.0),
            List.of(-2.0, -2.0),
            List.of(16777217.0, 16777217.0),
            List.of(2.0, 2.0),
            List.of(1.0, 1.0),
            List.of(-2.0, -2.0));
  }

  @Test
  void comparesInTheTypeOfTensorsWithDimensions() {
    assertThat(
            run(
                """
                graph g(x: f32[1]) {
                  h = aten::full([1], inf, dtype=torch.float16)
                  b = aten::full([], 1e10, dtype=torch.bfloat16)
                  t = aten::full([1], 0.1, dtype=torch.float16)
                  d = aten::full([], 0.1, dtype=torch.float64)
                  z = aten::full([1], 0.1, dtype=torch.float64)
                  p = aten::eq.Tensor(h, b)
                  q = aten::eq.Tensor(t, d)
                  r = aten::ge.Scalar(t, 0.1)
                  s = aten::eq.Tensor(t, z)
                  return p, q, r, s
                }
                """))
        .containsExactly(List.of(1.0), List.of(1.0), List.of(1.0), List.of(0.0));
  }

  @Test
  void unsignedIntegersHaveNoSignInCollectives() {
    var plan =
        Programs.plan(
            """
            group g = [0, 1]
            graph r(x: u64[2]) {
              a = _c10d_functional::all_reduce(x, "max", "g")
              b = _c10d_functional::wait_tensor(a)
              c = _c10d_functional::all_reduce(x, "min", "g")
              d = _c10d_functional::wait_tensor(c)
              return b, d
            }
            """);
    try (var session = Session.open(plan, new HostBackend())) {
      for (int rank = 0; rank < 2; rank++) {
        session.input(rank, "x").setLong(rank == 0 ? -1 : 1, 0);
        session.input(rank, "x").setLong(rank == 0 ? 2 : Long.MIN_VALUE, 1);
      }
      var graph = plan.forRank(0).graph();
      Programs.runsAsReference(session, List.of(graph, graph), plan, "unsigned");
      assertThat(session.output(0, 0).orElseThrow().getLong(0)).isEqualTo(-1);
      assertThat(session.output(0, 1).orElseThrow().getLong(1)).isEqualTo(2);
    }
  }

  @Test
  void listsGiveOneResultForEachTensor() {
    assertThat(
            run(
                """
                graph g(x: f32[2], y: bf16[3]) {
                  a, b = aten::_foreach_add.Scalar([x, y], 1.5)
                  c, d = aten::_foreach_mul.ScalarList([a, b], [2, -1])
                  return c, d
                }
                """))
        .containsExactly(List.of(5.0, 7.0), List.of(-2.5, -3.5, -4.5));
  }

  @Test
  void resultsLieAsTheGraphSays() {
    assertThat(
            run(
                """
                graph g(x: f32[1, 1, 3, 3], w: f32[2, 1, 2, 2]) {
                  y: f32[1, 2, 2, 2][20, 1, 8, 3] = aten::convolution(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
                  p, i = aten::max_pool2d_with_indices(y, [2, 2])
                  return y, p
                }
                """))
        .containsExactly(
            List.of(37.0, 47.0, 67.0, 77.0, 85.0, 111.0, 163.0, 189.0), List.of(77.0, 189.0));
  }

  /** 2049 and 4097 lie between numbers of f16, and 257 between numbers of bf16: ties to even. */
  @Test
  void reductionsConvertTheirOperandsFirst() {
    assertThat(
            run(
                """
                graph g(x: f32[2]) {
                  odd = aten::add.Scalar(x, 2048)
                  wide = aten::_to_copy(odd, dtype=torch.int64)
                  long = aten::expand(odd, [3000, 2])
                  half = aten::mul.Scalar(x, 0.25)
                  a = aten::sum(odd, dtype=torch.float16)
                  b = aten::sum(odd, dtype=torch.float32)
                  c = aten::sum(wide, dtype=torch.bfloat16)
                  d = aten::amax(odd)
                  e = aten::mean.dim(long, [0], dtype=torch.float16)
                  f = aten::cumsum(odd, 0, dtype=torch.float16)
                  i = aten::sum(half, dtype=torch.int64)
                  return a, b, c, d, e, f, i
                }
                """))
        .containsExactly(
            List.of(4098.0 - 2),
            List.of(4099.0),
            List.of(4096.0),
            List.of(2050.0),
            List.of(2048.0, 2050.0),
            List.of(2048.0, 4096.0),
            List.of(0.0));
  }

  @Test
  void integersAreMultipliedAsComplexNumbers() {
    assertThat(
            run(
                """
                graph g(x: i64[3]) {
                  m = aten::prod(x, dtype=torch.complex64)
                  p = aten::view_as_real(m)
                  c = aten::cumsum(x, 0, dtype=torch.complex128)
                  q = aten::view_as_real(c)
                  s = aten::cumsum(c, 0, dtype=torch.int64)
                  t = aten::sum(c, dtype=torch.float32)
                  return p, q, s, t
                }
                """))
        .containsExactly(
            List.of(6.0, 0.0),
            List.of(1.0, 0.0, 3.0, 0.0, 6.0, 0.0),
            List.of(1.0, 4.0, 10.0),
            List.of(10.0));
  }

  @Test
  @Timeout(value = 20, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void imagesWithoutElementsTakeNoTime() {
    assertThat(
            run(
                """
                graph g(x: f32[2, 3, 7, 6], y: f32[0, 3, 7, 6]) {
                  a = aten::_adaptive_avg_pool2d(x, [1099511627776, 0])
                  b = aten::_adaptive_avg_pool2d(y, [1048576, 1048576])
                  return a, b
                }
                """))
        .containsExactly(List.of(), List.of());
  }

  @Test
  void gradientsOfImagesAreImages() {
    assertThatThrownBy(
            () ->
                run(
                    """
                    graph g(x: f32[2, 3, 7]) {
                      y = aten::upsample_nearest2d_backward(x, [7], [2, 3, 4, 5])
                      return y
                    }
                    """))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("is not the shape of [2, 3, 4, 5] resized to [7]");
  }
}
