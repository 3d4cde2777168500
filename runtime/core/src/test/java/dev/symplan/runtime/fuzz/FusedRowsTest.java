package dev.symplan.runtime.fuzz;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.CompileOptions;
import dev.symplan.planner.Step;
import dev.symplan.planner.Target;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/**
 * Norms, softmaxes and what surrounds them, made up, give the same bits as a kernel that goes by
 * rows and op by op. Others with {@code -Dsymplan.seed=N}.
 */
class FusedRowsTest {
  private static final long SEED = Long.getLong("symplan.seed", 41_000);
  private static final int PROGRAMS = 400;

  @Test
  void rowsPassThroughWithoutChange() {
    int byRows = 0;
    for (long seed = SEED; seed < SEED + PROGRAMS; seed++) {
      var text = new Maker(new Random(seed)).text();
      var program = GraphParser.parse(new SourceFile("rows.graph", text));
      var options = CompileOptions.DEFAULT.withRanks(1);
      var outcome =
          Differential.check(
              new FuzzCase(program, Target.H200_X4, options, ImmutableMap.of(), seed));
      assertThat(outcome.finding()).as("seed %d%n%s", seed, text).isEmpty();
      assertThat(outcome.refused()).as("seed %d%n%s", seed, text).isEmpty();
      var plan = outcome.plan().orElseThrow().forRank(0);
      for (var step : plan.steps()) {
        if (step instanceof Step.Fused(var ops)) {
          byRows +=
              ops.stream().anyMatch(op -> plan.graph().ops().get(op).def().has(OpTrait.ROWWISE))
                  ? 1
                  : 0;
        }
      }
    }
    System.out.printf("%d steps by rows in %d programs from seed %d%n", byRows, PROGRAMS, SEED);
    assertThat(byRows).isGreaterThan(PROGRAMS / 4);
  }

  /** A value of a program: its name, and whether reductions left one element of each row. */
  private record Made(String name, boolean reduced) {}

  /** Writes one program down. */
  private static final class Maker {
    private static final List<String> UNARY =
        List.of("neg", "exp", "sigmoid", "relu", "rsqrt", "abs", "tanh");
    private static final List<String> BINARY =
        List.of("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "maximum");
    private static final List<String> REDUCTIONS =
        List.of("sum.dim_IntList", "mean.dim", "amax", "amin");

    private final Random random;
    private final List<Made> values = new ArrayList<>();
    private final StringBuilder body = new StringBuilder();
    private final String rows;
    private final int columns;

    Maker(Random random) {
      this.random = random;
      this.rows = pick(List.of("[17, %d]", "[3, 16, %d]", "[1, 40, %d]", "[2, 5, %d]"));
      this.columns = pick(List.of(1, 8, 24, 700));
    }

    private <T> T pick(List<T> list) {
      return list.get(random.nextInt(list.size()));
    }

    private void define(String expression, boolean reduced) {
      var name = "v" + values.size();
      body.append("  %s = %s\n".formatted(name, expression));
      values.add(new Made(name, reduced));
    }

    private void op() {
      var a = pick(values);
      switch (random.nextInt(9)) {
        case 0, 1 -> define("aten::%s(%s)".formatted(pick(UNARY), a.name()), a.reduced());
        case 2, 3, 4 -> {
          var b = pick(values);
          define(
              "aten::%s(%s, %s)".formatted(pick(BINARY), a.name(), b.name()),
              a.reduced() && b.reduced());
        }
        case 5, 6 -> define("aten::%s(%s, [-1], True)".formatted(pick(REDUCTIONS), a.name()), true);
        case 7 ->
            define(
                pick(List.of("aten::_softmax(%s, -1, False)", "aten::cumsum(%s, -1)"))
                    .formatted(a.name()),
                a.reduced());
        default -> {
          var dtype = pick(List.of("float32", "bfloat16", "float16"));
          define(
              "prims::convert_element_type(%s, torch.%s)".formatted(a.name(), dtype), a.reduced());
        }
      }
    }

    String text() {
      var shape = rows.formatted(columns);
      values.add(new Made("x", false));
      values.add(new Made("y", false));
      values.add(new Made("w", false));
      int count = 3 + random.nextInt(12);
      for (int i = 0; i < count; i++) {
        op();
      }
      var outputs =
          values.stream()
              .skip(3)
              .filter(value -> random.nextInt(4) == 0 || value == values.getLast())
              .map(Made::name)
              .collect(Collectors.joining(", "));
      return """
      graph version 1

      graph rows(x: f32%s, y: bf16%s, w: f32[%d]) {
      %s  return %s
      }
      """
          .formatted(shape, shape, columns, body, outputs);
    }
  }
}
