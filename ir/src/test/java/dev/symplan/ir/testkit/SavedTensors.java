package dev.symplan.ir.testkit;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Made-up training steps whose forward half gives sums of all ranks that the backward half reads in
 * the reverse order: such tensors wait, and none may be computed again. Weights wait, too, and so
 * does a state that the backward half changes in place.
 */
public final class SavedTensors {
  private SavedTensors() {}

  /** {@return the text of such a graph} */
  public static String text(Random random, int ranks) {
    return text(random, ranks, 3);
  }

  /**
   * {@return the text of one that only multiplies elements, and asks for some of its tensors and an
   * input to be in the host's memory}
   */
  public static String moved(Random random, int ranks) {
    var text = new StringBuilder();
    var moved = new ArrayList<String>();
    for (var line : elementwise(random, ranks).lines().toList()) {
      var read = line;
      for (var name : moved) {
        if (line.matches("  [vd]\\d+ = .*\\b%s\\b.*".formatted(name))) {
          text.append("  %1$s_back = symplan::reload(%1$s_host)\n".formatted(name));
          read = read.replaceAll("\\b%s\\b".formatted(name), name + "_back");
        }
      }
      read = read.replace("(x: f32[", "(y: f32[8, 8] @host, x: f32[");
      text.append(read.replace("return d0", "return d0, y" + outputs(moved))).append('\n');
      var made = read.strip().split(" ", -1)[0];
      if (made.matches("h[1-9]") && random.nextInt(4) > 0) {
        text.append("  %1$s_host = symplan::offload(%1$s)\n".formatted(made));
        moved.add(made);
      }
    }
    return text.toString();
  }

  private static String outputs(List<String> moved) {
    return moved.isEmpty() ? "" : ", %s_host".formatted(moved.getFirst());
  }

  /** {@return the text of one that only multiplies elements, which rounds alike everywhere} */
  public static String elementwise(Random random, int ranks) {
    return text(random, ranks, 1);
  }

  private static String text(Random random, int ranks, int kinds) {
    int size = 8 * (1 + random.nextInt(2));
    int layers = 2 + random.nextInt(3);
    var text = new StringBuilder("graph version 1\n\ngroup g = [0:%s]\n\n".formatted(ranks));
    text.append("graph step(x: f32[%1$s, %1$s]".formatted(size));
    for (int i = 0; i < layers; i++) {
      text.append(", w%2$s: f32[%1$s, %1$s]".formatted(size, i));
      text.append(random.nextInt(4) == 0 ? " @donated" : "");
    }
    text.append(", m: f32[%1$s, %1$s]) {\n".formatted(size));
    boolean early = random.nextBoolean();
    text.append(early ? "  h0 = aten::mul.Tensor(x, m)\n" : "  h0 = aten::neg(x)\n");
    for (int i = 0; i < layers; i++) {
      text.append("  a%1$s = %2$s\n".formatted(i, op(random, kinds, "h" + i, "w" + i)));
      text.append("  r%1$s = _c10d_functional::all_reduce(a%1$s, \"max\", \"g\")\n".formatted(i));
      text.append("  h%s = _c10d_functional::wait_tensor(r%s)\n".formatted(i + 1, i));
    }
    text.append("  d%1$s = aten::neg(h%1$s)\n".formatted(layers));
    for (int i = layers - 1; i >= 0; i--) {
      var saved = random.nextInt(3) == 0 ? "w" + i : "h" + i;
      if (random.nextBoolean()) {
        text.append("  v%s = aten::t(%s)\n".formatted(i, saved));
        text.append("  d%s = %s\n".formatted(i, op(random, kinds, "d" + (i + 1), "v" + i)));
      } else {
        text.append("  d%s = %s\n".formatted(i, op(random, kinds, "d" + (i + 1), saved)));
      }
      if (random.nextInt(2) == 0) {
        update(text, random, i);
      }
    }
    return text.append("  return d0\n}\n").toString();
  }

  /** The state changes by what a layer gives, now and then through a view. */
  private static void update(StringBuilder text, Random random, int layer) {
    boolean view = random.nextInt(3) == 0;
    if (view) {
      text.append("  q%s = aten::t(m)\n".formatted(layer));
    }
    var state = view ? "q" + layer : "m";
    text.append("  u%1$s = aten::mul_.Tensor(%2$s, d%1$s)\n".formatted(layer, state));
    if (random.nextBoolean()) {
      text.append("  z%1$s = aten::mul_.Tensor(u%1$s, d%1$s)\n".formatted(layer));
    }
  }

  private static String op(Random random, int kinds, String a, String b) {
    return switch (random.nextInt(kinds)) {
      case 0 -> "aten::mul.Tensor(%s, %s)".formatted(a, b);
      case 1 -> "aten::add.Tensor(%s, %s)".formatted(a, b);
      default -> "aten::mm(%s, %s)".formatted(a, b);
    };
  }
}
