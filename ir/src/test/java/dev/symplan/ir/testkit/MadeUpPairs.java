package dev.symplan.ir.testkit;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Two products of some tokens and large matrices, and elementwise ops that compute with both, made
 * up: GPUs may do all in one launch.
 */
public final class MadeUpPairs {
  private static final long GOLDEN_RATIO = 0x9E3779B97F4A7C15L;

  /** Elements of a matrix, at least. */
  private static final int ELEMENTS = 1 << 18;

  /** With a few tokens, rows and columns of a matrix, at least. */
  private static final int FEW_ROWS = 6144;

  private static final int FEW_INNER = 256;

  private static final List<String> OPS =
      List.of(
          "aten::add.Tensor(%1$s, %2$s)",
          "aten::sub.Tensor(%1$s, %2$s, alpha=2)",
          "aten::mul.Tensor(%1$s, %2$s)",
          "aten::maximum(%1$s, %2$s)",
          "aten::silu(%1$s)",
          "aten::relu(%1$s)",
          "prims::convert_element_type(%1$s, torch.float32)",
          "prims::convert_element_type(%1$s, torch.bfloat16)");

  private final Random random;
  private final StringBuilder body = new StringBuilder();
  private final List<String> values = new ArrayList<>(List.of("m", "n", "r"));

  private MadeUpPairs(long seed) {
    // Random's first numbers hardly differ between neighbouring seeds.
    this.random = new Random(seed * GOLDEN_RATIO);
  }

  /** {@return a program in the graph language, the same for the same seed} */
  public static String text(long seed) {
    return new MadeUpPairs(seed).text();
  }

  private <T> T pick(List<T> list) {
    return list.get(random.nextInt(list.size()));
  }

  private String product(String matrix) {
    return pick(
        List.of(
            "aten::mm(x, %s)".formatted(matrix),
            "aten::addmm(b, x, %s)".formatted(matrix),
            "aten::addmm(b, x, %s, alpha=0.5)".formatted(matrix)));
  }

  private String text() {
    // Of one kernel, up to 16 tokens; of another, 17 to 128, in one block and clusters of two.
    boolean few = random.nextInt(3) == 0;
    int tokens =
        few ? 1 + random.nextInt(16) : 17 + random.nextInt(random.nextBoolean() ? 48 : 112);
    int rows = (few ? FEW_ROWS : tokens > 64 ? 2700 : 1600) + random.nextInt(4000);
    rows -= pick(List.of(rows % 8, rows % 4, 0));
    int inner = few ? FEW_INNER : (Math.max(ELEMENTS / rows, 64) / 8 + 1 + random.nextInt(4)) * 8;
    int ops = 2 + random.nextInt(4);
    for (int i = 0; i < ops; i++) {
      var name = "v" + i;
      // What is made last is used, so that all ops can be one step.
      var one = i == 0 ? "m" : "v" + (i - 1);
      body.append(
          "  %s = %s\n".formatted(name, pick(OPS).formatted(one, i == 0 ? "n" : pick(values))));
      values.add(name);
    }
    var outputs = new ArrayList<>(List.of("v" + (ops - 1)));
    for (var value : values) {
      if (random.nextInt(4) == 0 && !value.equals("r") && !outputs.contains(value)) {
        outputs.add(value);
      }
    }
    return """
    graph version 1
    graph t(x: %1$s[%2$s, %4$s], w: %1$s[%3$s, %4$s], v: %1$s[%3$s, %4$s], b: %1$s[%3$s], r: %1$s[%2$s, %3$s]) {
      i = aten::permute(w, [1, 0])
      j = aten::permute(v, [1, 0])
      m = %5$s
      n = %6$s
    %7$s  return %8$s
    }
    """
        .formatted(
            pick(List.of("bf16", "f16")),
            tokens,
            rows,
            inner,
            product("i"),
            product("j"),
            body,
            String.join(", ", outputs));
  }
}
