package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.Session;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Collectives whose parts differ in size, or that move several tensors. */
@Timeout(60)
class HostExchangesTest {

  private static String uneven(String splits0, int from0, String splits1, int from1, int rows) {
    return """
    group g = [0, 1]
    graph parts(x: f32[4, 2]) ranks [0] {
      r = _c10d_functional::all_to_all_single(x, %s, "g")
      o = _c10d_functional::wait_tensor(r)
      p = aten::slice.Tensor(o, 0, %s, %s)
      return p
    }
    graph parts(x: f32[4, 2]) ranks [1] {
      r = _c10d_functional::all_to_all_single(x, %s, "g")
      o = _c10d_functional::wait_tensor(r)
      p = aten::slice.Tensor(o, 0, %s, %s)
      return p
    }
    """
        .formatted(splits0, from0, from0 + rows, splits1, from1, from1 + rows);
  }

  private static void checkExchange(
      String text, CompileOptions options, double[] received0, double[] received1) {
    try (var session = Session.open(Programs.plan(text, options), new HostBackend())) {
      for (int rank = 0; rank < 2; rank++) {
        var input = session.input(rank, "x");
        for (int row = 0; row < input.type().size(0); row++) {
          input.set(10 * rank + row, row, 0);
          input.set(-1, row, 1);
        }
      }
      session.run();
      assertThat(column(session, 0)).as(options.toString()).containsExactly(received0);
      assertThat(column(session, 1)).as(options.toString()).containsExactly(received1);
    }
  }

  @Test
  void exchangesUnevenParts() {
    // As PyTorch has it: the rows received from each rank, then those sent to each.
    var sameSize = uneven("[1, 3], [1, 3]", 0, "[3, 1], [3, 1]", 0, 4);
    for (var variant :
        new Variant[] {Variant.NCCL, Variant.ONE_SHOT, Variant.PUSH, Variant.COPY_ENGINE}) {
      for (var space : new MemorySpace[] {MemorySpace.EXTERNAL, MemorySpace.ANY}) {
        checkExchange(
            sameSize,
            CompileOptions.DEFAULT
                .withInputs(space)
                .withOutputs(space)
                .withVariants(ImmutableMap.of("r", variant)),
            new double[] {0, 10, 11, 12},
            new double[] {1, 2, 3, 13});
      }
    }
    for (var variant :
        new Variant[] {Variant.NCCL, Variant.ONE_SHOT, Variant.PUSH, Variant.COPY_ENGINE}) {
      var options = CompileOptions.DEFAULT.withVariants(ImmutableMap.of("r", variant));
      checkExchange(
          uneven("[3, 2], [3, 1]", 2, "[1, 2], [2, 2]", 0, 3),
          options,
          new double[] {2, 10, 11},
          new double[] {3, 12, 13});
      checkExchange(
          uneven("[0, 3], [0, 4]", 0, "[4, 1], [3, 1]", 2, 3),
          options,
          new double[] {10, 11, 12},
          new double[] {2, 3, 13});
    }
  }

  @Test
  void exchangesTensorsOfOtherSizesOnEachRank() {
    var text =
        """
        group g = [0, 1]
        graph parts(x: f32[4, 2]) ranks [0] {
          r = _c10d_functional::all_to_all_single(x, [1, 2], [1, 3], "g")
          o = _c10d_functional::wait_tensor(r)
          return o
        }
        graph parts(x: f32[2, 2]) ranks [1] {
          r = _c10d_functional::all_to_all_single(x, [3, 0], [2, 0], "g")
          o = _c10d_functional::wait_tensor(r)
          return o
        }
        """;
    for (var variant :
        new Variant[] {Variant.NCCL, Variant.ONE_SHOT, Variant.PUSH, Variant.COPY_ENGINE}) {
      for (var space : MemorySpace.choices()) {
        checkExchange(
            text,
            CompileOptions.DEFAULT
                .withInputs(space)
                .withOutputs(space)
                .withVariants(ImmutableMap.of("r", variant)),
            new double[] {0, 10, 11},
            new double[] {1, 2, 3});
      }
    }
  }

  @Test
  void stridesAnewFromTheStartOfTheStorage() {
    var text =
        """
        graph strided(x: f32[6, 1]) {
          s = aten::slice.Tensor(x, 0, 3, 6)
          a = aten::as_strided(s, [2, 1], [2, 1], 1)
          b = aten::as_strided(s, [2, 1], [2, 1])
          return a, b
        }
        """;
    try (var session = Session.open(Programs.plan(text), new HostBackend())) {
      for (int row = 0; row < 6; row++) {
        session.input(0, "x").set(row, row, 0);
      }
      session.run();
      assertThat(column(session, 0)).containsExactly(1, 3);
      assertThat(session.output(0, 1).orElseThrow().get(1, 0)).isEqualTo(5);
    }
  }

  @Test
  void refusesPartsThatDoNotFit() {
    assertThatThrownBy(() -> Programs.plan(uneven("[1, 3], [1, 3]", 0, "[2, 2], [3, 1]", 0, 4)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("ranks-disagree")
        .hasMessageContaining("rank 1 takes 2 rows from rank 0, which sends it 3");
  }

  private static double[] column(Session session, int rank) {
    var output = session.output(rank, 0).orElseThrow();
    var column = new double[(int) output.type().size(0)];
    for (int row = 0; row < column.length; row++) {
      column[row] = output.get(row, 0);
    }
    return column;
  }

  @Test
  void movesSeveralTensorsAtOnce() {
    var text =
        """
        group g = [0, 1, 2]
        graph several(x: f32[5], y: bf16[7, 3]) {
          a, b = _c10d_functional::all_reduce_coalesced([x, y], "sum", "g")
          p = _c10d_functional::wait_tensor(a)
          q = _c10d_functional::wait_tensor(b)
          return p, q
        }
        """;
    for (var variant : new Variant[] {Variant.NCCL, Variant.ONE_SHOT, Variant.TWO_SHOT}) {
      var plan =
          Programs.plan(text, CompileOptions.DEFAULT.withVariants(ImmutableMap.of("a", variant)));
      try (var session = Session.open(plan, new HostBackend())) {
        for (int rank = 0; rank < 3; rank++) {
          for (int i = 0; i < 5; i++) {
            session.input(rank, "x").set(rank + 0.5 * i, i);
          }
          for (int i = 0; i < 7; i++) {
            for (int j = 0; j < 3; j++) {
              session.input(rank, "y").set(rank * i + j, i, j);
            }
          }
        }
        session.run();
        for (int rank = 0; rank < 3; rank++) {
          assertThat(session.output(rank, 0).orElseThrow().get(4))
              .as(variant.text())
              .isEqualTo(3 + 1.5 * 4);
          assertThat(session.output(rank, 1).orElseThrow().get(6, 2))
              .as(variant.text())
              .isEqualTo(3 * 6 + 3 * 2);
        }
      }
    }
  }
}
