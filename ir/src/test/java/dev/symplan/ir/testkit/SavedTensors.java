package dev.symplan.ir.testkit;

import java.util.Random;

/**
 * Made-up training steps whose forward half gives sums of all ranks that the backward half reads in
 * the reverse order: such tensors wait, and none may be computed again.
 */
public final class SavedTensors {
  private SavedTensors() {}

  /** {@return the text of such a graph} */
  public static String text(Random random, int ranks) {
    return text(random, ranks, 3);
  }

  /** {@return the text of one that only multiplies elements, which rounds alike everywhere} */
  public static String elementwise(Random random, int ranks) {
    return text(random, ranks, 1);
  }

  private static String text(Random random, int ranks, int kinds) {
    int size = 8 * (1 + random.nextInt(2));
    int layers = 2 + random.nextInt(3);
    var text = new StringBuilder("graph version 1\n\ngroup g = [0:%s]\n\n".formatted(ranks));
    text.append("graph step(x: f32[%1$s, %1$s], w: f32[%1$s, %1$s]) {\n".formatted(size));
    text.append("  h0 = aten::neg(x)\n");
    for (int i = 0; i < layers; i++) {
      text.append("  a%1$s = %2$s\n".formatted(i, op(random, kinds, "h" + i, "w")));
      text.append("  r%1$s = _c10d_functional::all_reduce(a%1$s, \"max\", \"g\")\n".formatted(i));
      text.append("  h%s = _c10d_functional::wait_tensor(r%s)\n".formatted(i + 1, i));
    }
    text.append("  d%1$s = aten::neg(h%1$s)\n".formatted(layers));
    for (int i = layers - 1; i >= 0; i--) {
      if (random.nextBoolean()) {
        text.append("  v%1$s = aten::t(h%1$s)\n".formatted(i));
        text.append("  d%s = %s\n".formatted(i, op(random, kinds, "d" + (i + 1), "v" + i)));
      } else {
        text.append("  d%s = %s\n".formatted(i, op(random, kinds, "d" + (i + 1), "h" + i)));
      }
    }
    return text.append("  return d0\n}\n").toString();
  }

  private static String op(Random random, int kinds, String a, String b) {
    return switch (random.nextInt(kinds)) {
      case 0 -> "aten::mul.Tensor(%s, %s)".formatted(a, b);
      case 1 -> "aten::add.Tensor(%s, %s)".formatted(a, b);
      default -> "aten::mm(%s, %s)".formatted(a, b);
    };
  }
}
