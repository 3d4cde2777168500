package dev.symplan.runtime.check;

import static dev.symplan.runtime.check.LoweredAttentionTest.parse;
import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphPrinter;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Attention with masks that are made up, most of them from no input, gives what it gave. */
class FoldedMasksTest {
  private static final int PROGRAMS = Integer.getInteger("symplan.graphs", 500);
  private static final long SEED = Fuzz.seed(20_261_128_000L);

  private static final class Maker extends MadeUpText {
    private final int rows;
    private final int keys;

    /** Of so many rows and keys each. */
    private final List<String> bools = new ArrayList<>();

    private final List<String> floats = new ArrayList<>();

    Maker(long seed) {
      super(seed);
      this.rows = 1 + random.nextInt(6);
      this.keys = random.nextBoolean() ? rows : 1 + random.nextInt(6);
    }

    private String pick(List<String> from) {
      return from.get(random.nextInt(from.size()));
    }

    private String size() {
      return "[%s, %s]".formatted(rows, keys);
    }

    /** Positions, compared or in a triangle; some rows and columns of more than there are. */
    private void begin() {
      var col = define("aten::arange(%s)", keys);
      var row = define("aten::unsqueeze(%s, 1)", define("aten::arange(%s)", rows));
      var op = pick("le", "le", "le", "lt", "ge", "gt", "eq", "ne");
      bools.add(define("aten::%s.Tensor(%s, %s)", op, col, row));
      bools.add(define("aten::expand(%s, %s)", define("aten::ge.Scalar(%s, 0)", col), size()));
      var more = random.nextInt(3);
      var whole =
          define("aten::ones([%s, %s], dtype=torch.bool)", rows + more, keys + random.nextInt(3));
      var triangle = define("aten::%s(%s, %s)", pick("tril", "tril", "triu"), whole, pick(0, 0, 1));
      var some = define("aten::slice.Tensor(%s, 0, %s, %s)", triangle, pick(0, more), rows + more);
      some = define("aten::slice.Tensor(%s, 0, 0, %s)", some, rows);
      bools.add(define("aten::slice.Tensor(%s, 1, 0, %s)", some, keys));
      if (random.nextInt(6) == 0) {
        bools.add("x");
      }
      floats.add(define("aten::zeros(%s)", size()));
      floats.add(define("aten::full(%s, %s)", size(), pick("-inf", "-65504.0", "1.0")));
    }

    private void step() {
      switch (random.nextInt(11)) {
        case 0 -> bools.add(define("aten::logical_not(%s)", pick(bools)));
        case 1 ->
            bools.add(
                define(
                    "aten::%s(%s, %s)",
                    pick("bitwise_and.Tensor", "logical_or", "bitwise_xor.Tensor"),
                    pick(bools),
                    pick(bools)));
        case 2, 8, 9 ->
            floats.add(
                define(
                    "aten::where.ScalarOther(%s, %s, %s)",
                    pick(bools),
                    pick("0.0", "0.0", "1.0"),
                    pick("-inf", "-65504.0", "-3.0", "0.0")));
        case 3 ->
            floats.add(define("aten::masked_fill.Scalar(%s, %s, -inf)", pick(floats), pick(bools)));
        case 4 ->
            floats.add(define("aten::%s(%s, %s)", pick("triu", "tril"), pick(floats), pick(0, 1)));
        case 5 -> floats.add(define("aten::minimum(%s, %s)", pick(floats), pick(floats)));
        // What is written sees later reads, and views of it do, too.
        case 6 -> define("aten::fill_.Scalar(%s, %s)", part(pick(floats)), pick("0.0", "-inf"));
        case 7 -> {
          var written = define("aten::clone(%s)", pick(bools));
          bools.add(written);
          define("aten::logical_not_(%s)", part(written));
        }
        default -> floats.add(define("aten::mul.Scalar(%s, %s)", pick(floats), pick(1, 2)));
      }
    }

    private String part(String of) {
      int dim = random.nextInt(2);
      int end = 1 + random.nextInt(dim == 0 ? rows : keys);
      return random.nextInt(3) == 0
          ? of
          : define("aten::slice.Tensor(%s, %s, %s, %s)", of, dim, random.nextInt(end), end);
    }

    String text() {
      begin();
      int steps = random.nextInt(6);
      for (int i = 0; i < steps; i++) {
        step();
      }
      // What was made last is the most interesting.
      var from = random.nextBoolean() ? floats : bools;
      var mask = random.nextBoolean() ? from.getLast() : pick(from);
      boolean causal = random.nextInt(6) == 0;
      body.append(
          "  o = aten::scaled_dot_product_attention(q, k, v, %s, 0.0, %s)\n"
              .formatted(mask, causal ? "True" : "False"));
      if (random.nextInt(4) == 0) {
        step();
      }
      return """
      graph version 1
      graph t(q: f32[1, 2, %1$s, 8], k: f32[1, 2, %2$s, 8], v: f32[1, 2, %2$s, 8], x: b8[%1$s, %2$s]) {
      %3$s  return o%4$s
      }
      """
          .formatted(rows, keys, body, random.nextInt(4) == 0 ? ", " + mask : "");
    }
  }

  @Test
  void giveWhatTheyGave() {
    int folded = 0;
    for (long seed = SEED; seed < SEED + PROGRAMS; seed++) {
      var text = new Maker(seed).text();
      var made = MadeUpText.compiled(text);
      folded += GraphPrinter.print(made).contains("attention(q, k, v, a") ? 0 : 1;
      MadeUpText.checkSame(parse(text), made, seed);
    }
    System.out.printf("%s of %s masks folded, from seed %s%n", folded, PROGRAMS, SEED);
    assertThat(folded).as("folded masks").isGreaterThan(PROGRAMS / 6);
  }
}
