package dev.symplan.ir.testkit;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Elementwise ops and copies, made up, of tensors whose dimensions are in other orders in memory,
 * parts of them among these.
 */
public final class MadeUpTurned {
  private static final long GOLDEN_RATIO = 0x9E3779B97F4A7C15L;

  private static final Map<String, String> TORCH =
      Map.of("f32", "float32", "bf16", "bfloat16", "i64", "int64", "f64", "float64");

  private final Random random;
  private final StringBuilder body = new StringBuilder();
  private final List<String> inputs = new ArrayList<>();
  private final List<Integer> shape;
  private final List<String> tensors = new ArrayList<>();
  private int count;

  private MadeUpTurned(long seed) {
    // Random's first numbers hardly differ between neighbouring seeds.
    this.random = new Random(seed * GOLDEN_RATIO);
    // From 32,768 elements on, threads may take squares.
    this.shape =
        pick(
            List.of(
                List.of(2, 4, 64, 96),
                List.of(3, 2, 70, 80),
                List.of(200, 168),
                List.of(260, 4, 36),
                List.of(8, 1030, 4),
                List.of(181, 183),
                List.of(5, 1, 66, 100, 1),
                List.of(2, 20000),
                List.of(20, 20, 6, 16),
                List.of(3, 5, 7, 330)));
  }

  /** {@return a program in the graph language, the same for the same seed} */
  public static String text(long seed) {
    return new MadeUpTurned(seed).text();
  }

  private <T> T pick(List<T> list) {
    return list.get(random.nextInt(list.size()));
  }

  private String define(String expression) {
    var name = "v" + count++;
    body.append("  %s = %s\n".formatted(name, expression));
    return name;
  }

  /** A tensor of the shape, or one that is broadcast to it, that is an input turned. */
  private String tensor(String dtype, boolean whole) {
    var order = new ArrayList<>(IntStream.range(0, shape.size()).boxed().toList());
    if (random.nextInt(3) > 0) {
      Collections.shuffle(order, random);
    }
    var sizes = new ArrayList<>(shape);
    if (!whole) {
      sizes.set(random.nextInt(sizes.size()), 1);
      sizes.set(random.nextInt(sizes.size()), 1);
    }
    // The input's dimension i is the tensor's dimension order[i].
    var own = new ArrayList<>(order.stream().map(sizes::get).toList());
    int part = random.nextInt(3) == 0 ? random.nextInt(own.size()) : -1;
    int skipped = pick(List.of(1, 4));
    if (part >= 0) {
      own.set(part, own.get(part) + 8);
    }
    var name = "x" + inputs.size();
    inputs.add("%s: %s%s".formatted(name, dtype, own));
    var value = name;
    if (part >= 0) {
      value =
          define(
              "aten::slice.Tensor(%s, %s, %s, %s)"
                  .formatted(name, part, skipped, own.get(part) - 8 + skipped));
    }
    var back = IntStream.range(0, order.size()).map(order::indexOf).boxed().toList();
    return define("aten::permute(%s, %s)".formatted(value, back));
  }

  /** Of whole rows of the result or of an operand. */
  private String byRows(String result) {
    int dim = shape.getLast() == 1 ? shape.size() - 2 : shape.size() - 1;
    var operand = random.nextBoolean() ? result : tensors.getFirst();
    var value =
        define(
            "prims::convert_element_type(%s, torch.%s)"
                .formatted(operand, TORCH.get(pick(List.of("f32", "bf16")))));
    return switch (random.nextInt(4)) {
      case 0 -> define("aten::sum.dim_IntList(%s, [%s])".formatted(value, dim));
      case 1 -> define("aten::amax(%s, [%s])".formatted(value, dim));
      case 2 -> {
        var more = define("aten::add.Tensor(%s, %s)".formatted(tensor("f32", true), value));
        yield define("aten::_softmax(%s, %s, False)".formatted(more, dim));
      }
      default -> define("aten::_softmax(%s, %s, False)".formatted(value, dim));
    };
  }

  private String text() {
    var dtypes = List.of("f32", "bf16", "f32", "bf16", "i64", "f64");
    int operands = 2 + random.nextInt(3);
    for (int i = 0; i < operands; i++) {
      tensors.add(tensor(pick(dtypes), i < 2 || random.nextBoolean()));
    }
    var outputs = new ArrayList<String>();
    var last = tensors.getFirst();
    for (var other : tensors.subList(1, tensors.size())) {
      last =
          switch (random.nextInt(4)) {
            case 0 -> {
              var less = define("aten::lt.Tensor(%s, %s)".formatted(other, tensors.getFirst()));
              yield define("aten::where.self(%s, %s, %s)".formatted(less, last, other));
            }
            case 1 -> define("aten::mul.Tensor(%s, %s)".formatted(last, other));
            default -> define("aten::add.Tensor(%s, %s)".formatted(last, other));
          };
      if (random.nextInt(3) == 0) {
        outputs.add(last);
      }
    }
    if (random.nextBoolean()) {
      last =
          define(
              "prims::convert_element_type(%s, torch.%s)".formatted(last, TORCH.get(pick(dtypes))));
    }
    outputs.add(last);
    if (random.nextBoolean()) {
      outputs.add(byRows(last));
    }
    int all = shape.stream().reduce(1, Math::multiplyExact);
    var copied = pick(tensors.subList(0, 2));
    outputs.add(define("aten::reshape(%s, [%s])".formatted(copied, all)));
    if (random.nextBoolean()) {
      // A tensor of another type, with its dimensions in another order, is written.
      outputs.add(define("aten::copy_(%s, %s)".formatted(tensor(pick(dtypes), true), copied)));
    }
    return """
    graph version 1
    graph turned(%s) {
    %s  return %s
    }
    """
        .formatted(
            String.join(", ", inputs),
            body,
            outputs.stream().distinct().collect(Collectors.joining(", ")));
  }
}
