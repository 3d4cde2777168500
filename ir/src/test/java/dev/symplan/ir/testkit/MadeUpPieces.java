package dev.symplan.ir.testkit;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Elementwise ops around concatenations of slices, made up: rotated halves, as in rotary position
 * embeddings, and everything like it.
 */
public final class MadeUpPieces {
  private static final long GOLDEN_RATIO = 0x9E3779B97F4A7C15L;

  private static final List<String> UNARY = List.of("neg", "abs", "relu", "square");
  private static final List<String> BINARY =
      List.of("add.Tensor", "sub.Tensor", "mul.Tensor", "maximum");

  private static final Map<String, String> TORCH =
      Map.of("f32", "float32", "bf16", "bfloat16", "f16", "float16");

  private final Random random;
  private final StringBuilder body = new StringBuilder();
  private final List<Integer> shape;
  private final String dtype;
  private final int dim;
  private int count;

  private MadeUpPieces(long seed) {
    // Random's first numbers hardly differ between neighbouring seeds.
    this.random = new Random(seed * GOLDEN_RATIO);
    this.shape =
        pick(
            List.of(
                List.of(3, 16, 48),
                List.of(2, 9, 4, 20),
                List.of(40, 7),
                // From 32,768 elements on, kernels take vectors.
                List.of(1, 6, 64, 128),
                List.of(2, 3, 96, 72),
                List.of(70, 512)));
    this.dtype = pick(List.of("f32", "bf16", "f16"));
    this.dim = random.nextInt(6) == 0 ? 0 : 1 + random.nextInt(shape.size() - 1);
  }

  /** {@return a program in the graph language, the same for the same seed} */
  public static String text(long seed) {
    return new MadeUpPieces(seed).text();
  }

  private <T> T pick(List<T> list) {
    return list.get(random.nextInt(list.size()));
  }

  private String define(String expression) {
    var name = "v" + count++;
    body.append("  %s = %s\n".formatted(name, expression));
    return name;
  }

  private String text() {
    var before = maybeUnary("x");
    var joined = joined(shape.get(dim), random.nextInt(3) == 0 ? 2 : 1);
    var scaled = define("aten::mul.Tensor(%s, %s)".formatted(joined, pick(List.of("y", "s", "w"))));
    var last = define("aten::%s(%s, %s)".formatted(pick(BINARY), before, scaled));
    var outputs = new ArrayList<>(List.of(maybeUnary(last)));
    // A piece may be in memory, too.
    for (var other : List.of(before, joined, scaled)) {
      if (random.nextInt(8) == 0 && other.startsWith("v")) {
        outputs.add(other);
      }
    }
    return """
    graph version 1
    graph pieces(x: %1$s%2$s, y: %1$s%2$s, s: %1$s[%3$s], w: %1$s%4$s) {
    %5$s  return %6$s
    }
    """
        .formatted(
            dtype,
            shape,
            shape.getLast(),
            IntStream.range(0, shape.size()).mapToObj(i -> i == dim ? shape.get(i) : 1).toList(),
            body,
            outputs.stream().distinct().collect(Collectors.joining(", ")));
  }

  private String maybeUnary(String value) {
    return random.nextBoolean() ? define("aten::%s(%s)".formatted(pick(UNARY), value)) : value;
  }

  /** Something of the shape, but so long along the dimension, joined from pieces. */
  private String joined(int length, int depth) {
    var pieces = new ArrayList<String>();
    int first = length;
    for (int rest = length; rest > 0; ) {
      boolean cut = random.nextInt(4) > 0 && rest > 1;
      int own =
          !cut ? rest : random.nextBoolean() ? Math.max(1, rest / 2) : 1 + random.nextInt(rest);
      first = pieces.isEmpty() ? own : first;
      pieces.add(piece(own, depth));
      rest -= own;
    }
    if (pieces.size() == 2 && random.nextBoolean()) {
      return scattered(pieces, first, length);
    }
    return define("aten::cat([%s], %s)".formatted(String.join(", ", pieces), dim));
  }

  /** The same as gradients have it: a sum of tensors that are zero outside of a slice. */
  private String scattered(List<String> pieces, int first, int length) {
    var sizes =
        IntStream.range(0, shape.size()).mapToObj(i -> i == dim ? length : shape.get(i)).toList();
    var zeros = define("aten::full(%s, 0, dtype=torch.%s)".formatted(sizes, TORCH.get(dtype)));
    var terms =
        new ArrayList<>(
            List.of(
                define(
                    "aten::slice_scatter(%s, %s, %s, %s, %s)"
                        .formatted(zeros, pieces.getFirst(), dim, 0, first)),
                define(
                    "aten::slice_scatter(%s, %s, %s, %s)"
                        .formatted(zeros, pieces.getLast(), dim, first))));
    if (random.nextBoolean()) {
      Collections.reverse(terms);
    }
    return define("aten::add.Tensor(%s)".formatted(String.join(", ", terms)));
  }

  private String piece(int length, int depth) {
    if (depth > 1 && random.nextInt(3) == 0) {
      return maybeUnary(joined(length, depth - 1));
    }
    var piece = maybeUnary(slice(length));
    return switch (random.nextInt(6)) {
      case 0 ->
          define("aten::%s(%s, %s)".formatted(pick(BINARY), piece, maybeUnary(slice(length))));
      case 1 -> define("aten::mul.Scalar(%s, 1.5)".formatted(piece));
      default -> piece;
    };
  }

  private String slice(int length) {
    int start = random.nextInt(shape.get(dim) - length + 1);
    // Where vectors may begin.
    start = random.nextBoolean() ? start / 8 * 8 : start;
    return define(
        "aten::slice.Tensor(%s, %s, %s, %s)"
            .formatted(pick(List.of("x", "x", "y")), dim, start, start + length));
  }
}
