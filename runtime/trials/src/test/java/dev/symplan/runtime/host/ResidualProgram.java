package dev.symplan.runtime.host;

import static com.google.common.collect.ImmutableSet.toImmutableSet;

import com.google.common.collect.ImmutableSet;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * A random graph of all_reduces, ops by rows, and ops that are not, over integers.
 *
 * @param replicated the inputs that are to be the same on all ranks
 */
record ResidualProgram(String text, ImmutableSet<String> replicated) {
  private static final List<String> GROUPS =
      List.of("[0, 1]", "[0, 1, 2, 3]", "[0, 2], [1, 3]", "[3, 1], [0, 2]");

  private static final List<String> REDUCTIONS = List.of("sum", "max", "min");
  private static final int COLUMNS = 4;

  static ResidualProgram draw(Random random) {
    return new Drawing(random).program();
  }

  private static final class Drawing {
    private final Random random;
    private final int rows;
    private final boolean batch;
    private final StringBuilder body = new StringBuilder();
    private final List<String> tensors = new ArrayList<>();
    private int names;

    Drawing(Random random) {
      this.random = random;
      // Some do not divide among four ranks.
      this.rows = 2 * (1 + random.nextInt(4));
      this.batch = random.nextBoolean();
    }

    ResidualProgram program() {
      var shape = batch ? "1, %s, %s".formatted(rows, COLUMNS) : "%s, %s".formatted(rows, COLUMNS);
      var inputs = List.of("x", "y", "p", "q");
      tensors.addAll(inputs);
      int ops = 3 + random.nextInt(10);
      for (int i = 0; i < ops; i++) {
        add();
      }
      int outputs = 1 + random.nextInt(2);
      var returned =
          IntStream.range(0, outputs)
              .mapToObj(i -> tensors.get(tensors.size() - 1 - random.nextInt(2) * i))
              .collect(Collectors.joining(", "));
      var params =
          inputs.stream()
              .map(name -> "%s: f32[%s]".formatted(name, shape))
              .collect(Collectors.joining(", "));
      var text =
          """
          graph version 1
          group g = %s
          graph residual(%s, w: f32[%s], c: f32[%s, 1]) {
          %s  return %s
          }
          """
              .formatted(
                  GROUPS.get(random.nextInt(GROUPS.size())), params, COLUMNS, rows, body, returned);
      var replicated =
          List.of("x", "y", "w", "c").stream()
              .filter(_ -> random.nextInt(8) > 0)
              .collect(toImmutableSet());
      return new ResidualProgram(text, replicated);
    }

    private String any() {
      // Late ones depend on more.
      int back = Math.min(tensors.size(), 1 + random.nextInt(5));
      return tensors.get(tensors.size() - back);
    }

    private String emit(String form, Object... args) {
      var name = "t" + names++;
      body.append("  %s = %s%n".formatted(name, form.formatted(args)));
      return name;
    }

    private void add() {
      tensors.add(
          switch (random.nextInt(16)) {
            case 0, 1, 2 -> reduced();
            case 3, 4, 5 -> emit("aten::add.Tensor(%s, %s)", any(), any());
            case 6 -> emit("aten::maximum(%s, %s)", any(), any());
            case 7 -> emit("aten::mul.Tensor(%s, w)", any());
            case 8 -> emit("aten::sub.Tensor(%s, c)", any());
            case 9 -> emit("aten::neg(%s)", any());
            case 10 -> {
              var value = any();
              var most = emit("aten::amax(%s, [-1], True)", value);
              yield emit("aten::sub.Tensor(%s, %s)", value, most);
            }
            case 11 -> {
              var seen = emit("aten::view(%s, [%s, %s])", any(), rows, COLUMNS);
              var sum = emit("aten::sum.dim_IntList(%s, [1], True)", seen);
              var all = emit("aten::minimum(%s, %s)", seen, sum);
              yield emit("aten::view(%s, [%s%s, %s])", all, batch ? "1, " : "", rows, COLUMNS);
            }
            case 12 -> emit("aten::flip(%s, [%s])", any(), batch ? 1 : 0);
            case 13 -> emit("aten::view_as(%s, %s)", any(), any());
            case 14 -> {
              var value = any();
              var both = emit("aten::cat([%s, %s], -1)", value, any());
              var least = emit("aten::amin(%s, [-1], True)", both);
              yield emit("aten::add.Tensor(%s, %s)", value, least);
            }
            default -> {
              var value = any();
              yield emit("aten::add_.Tensor(%s, %s)", value, any());
            }
          });
    }

    private String reduced() {
      var reduction = REDUCTIONS.get(random.nextInt(REDUCTIONS.size()));
      var sent = random.nextInt(3) == 0 ? any() : random.nextBoolean() ? "p" : "q";
      var result = emit("_c10d_functional::all_reduce(%s, \"%s\", \"g\")", sent, reduction);
      return emit("_c10d_functional::wait_tensor(%s)", result);
    }
  }
}
