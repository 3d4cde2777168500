package dev.symplan.ir.testkit;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Norms, softmaxes and what surrounds them, made up: programs of elementwise ops and ops over the
 * last dimension.
 */
public final class MadeUpRows {
  private static final long GOLDEN_RATIO = 0x9E3779B97F4A7C15L;

  private static final List<String> UNARY =
      List.of("neg", "exp", "sigmoid", "relu", "abs", "tanh", "square");
  private static final List<String> BINARY =
      List.of("add.Tensor", "sub.Tensor", "mul.Tensor", "maximum");
  private static final List<String> REDUCTIONS =
      List.of("sum.dim_IntList", "mean.dim", "amax", "amin", "logsumexp", "var.dim");
  private static final List<String> WHOLE =
      List.of(
          "aten::_softmax(%s, -1, False)",
          "aten::_log_softmax(%s, -1, False)", "aten::cumsum(%s, -1)");

  /** A value: its name, and whether reductions left one element of each row. */
  private record Made(String name, boolean reduced) {}

  private final Random random;
  private final List<String> unary;
  private final List<String> binary;
  private final List<Made> values = new ArrayList<>();
  private final StringBuilder body = new StringBuilder();
  private final String rows;
  private final int columns;

  private MadeUpRows(long seed, boolean amplifying) {
    // Random's first numbers hardly differ between neighbouring seeds.
    this.random = new Random(seed * GOLDEN_RATIO);
    this.unary = amplifying ? concat(UNARY, "rsqrt") : UNARY;
    this.binary = amplifying ? concat(BINARY, "div.Tensor") : BINARY;
    this.rows = pick(List.of("[17, %s]", "[3, 16, %s]", "[1, 40, %s]", "[2, 5, %s]"));
    this.columns = pick(List.of(1, 8, 24, 257, 700, 5000));
  }

  /**
   * {@return a program in the graph language, the same for the same arguments}
   *
   * @param amplifying whether there are ops of which a small difference makes a large one, for
   *     comparisons to the bit
   */
  public static String text(long seed, boolean amplifying) {
    return new MadeUpRows(seed, amplifying).text();
  }

  private static List<String> concat(List<String> ops, String other) {
    return Stream.concat(ops.stream(), Stream.of(other)).toList();
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
      case 0, 1 -> define("aten::%s(%s)".formatted(pick(unary), a.name()), a.reduced());
      case 2, 3, 4 -> {
        var b = pick(values);
        define(
            "aten::%s(%s, %s)".formatted(pick(binary), a.name(), b.name()),
            a.reduced() && b.reduced());
      }
      case 5, 6 -> {
        var reduction = pick(REDUCTIONS);
        // Of one element there is no unbiased variance.
        var options = reduction.equals("var.dim") ? "[-1], False, True" : "[-1], True";
        define("aten::%s(%s, %s)".formatted(reduction, a.name(), options), true);
      }
      case 7 -> define(pick(WHOLE).formatted(a.name()), a.reduced());
      default -> {
        var dtype = pick(List.of("float32", "bfloat16", "float16"));
        define("prims::convert_element_type(%s, torch.%s)".formatted(a.name(), dtype), a.reduced());
      }
    }
  }

  private String text() {
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
    graph rows(x: f32%s, y: bf16%s, w: f32[%s]) {
    %s  return %s
    }
    """
        .formatted(shape, shape, columns, body, outputs);
  }
}
