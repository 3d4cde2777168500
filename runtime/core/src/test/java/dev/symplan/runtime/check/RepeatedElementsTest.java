package dev.symplan.runtime.check;

import static dev.symplan.runtime.check.LoweredAttentionTest.parse;
import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphPrinter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Made-up programs that repeat elements, or pick some, give what they gave. */
class RepeatedElementsTest {
  private static final int PROGRAMS = Integer.getInteger("symplan.graphs", 500);
  private static final long SEED = Fuzz.seed(20_261_129_000L);

  private static final class Maker extends MadeUpText {
    private final int rows;
    private final int columns;

    /** Elements of each row that a gather picks. */
    private final int picks;

    /** Of all rows and columns. */
    private final List<String> whole = new ArrayList<>(List.of("x", "y"));

    /** Of one column, of one row, and of a number. */
    private final List<String> few = new ArrayList<>(List.of("r", "c", "s"));

    /** Of which every element is of its own, and no input's. */
    private final List<String> own = new ArrayList<>();

    Maker(long seed) {
      super(seed);
      this.rows = 2 + random.nextInt(4);
      this.columns = 3 + random.nextInt(5);
      this.picks = 1 + random.nextInt(2);
    }

    /** Late ones are more interesting. */
    private String pick(List<String> from) {
      int size = from.size();
      return from.get(size - 1 - Math.min(random.nextInt(size), random.nextInt(size)));
    }

    private String size() {
      return "[%s, %s]".formatted(rows, columns);
    }

    private String unary(String of) {
      return define(
          pick(
              "aten::neg(%s)",
              "aten::abs(%s)",
              "aten::sigmoid(%s)",
              "aten::tanh(%s)",
              "aten::mul.Tensor(%s, 0.5)",
              "aten::add.Tensor(%s, 1)",
              "aten::pow.Tensor_Scalar(%s, 2)",
              "aten::clamp(%s, -1.0, 1.0)"),
          of);
    }

    private String binary(String one, String other) {
      boolean turned = random.nextBoolean();
      return define(
          pick(
              "aten::add.Tensor(%s, %s)",
              "aten::sub.Tensor(%s, %s, alpha=2)",
              "aten::mul.Tensor(%s, %s)",
              "aten::maximum(%s, %s)"),
          turned ? other : one,
          turned ? one : other);
    }

    private String repeated() {
      return random.nextInt(3) == 0
          ? define("aten::expand_as(%s, %s)", pick(few), pick(whole))
          : define("aten::expand(%s, %s)", pick(few), size());
    }

    private void step() {
      switch (random.nextInt(14)) {
        case 0 -> whole.add(repeated());
        case 1, 2 -> whole.add(binary(pick(whole), unary(repeated())));
        case 3 -> whole.add(unary(pick(whole)));
        case 4, 5 -> whole.add(binary(pick(whole), pick(whole)));
        case 6 -> whole.add(binary(pick(whole), pick(few)));
        case 7 -> few.add(unary(pick(few)));
        case 8 ->
            few.add(
                define(
                    pick(
                        "aten::sum.dim_IntList(%s, [1], True)",
                        "aten::mean.dim(%s, [1], True)",
                        "aten::amax(%s, [0])",
                        "aten::sum.dim_IntList(%s, [0], True)"),
                    pick(whole)));
        case 9 -> {
          var copy = define("aten::clone(%s)", pick(whole));
          own.add(copy);
          whole.add(copy);
        }
        // What is written sees later reads, and views of it do, too.
        case 10 -> write();
        case 11 -> {
          var flat = define("aten::clone(%s)", pick(whole));
          flat = unary(define("aten::view(%s, [%s])", flat, rows * columns));
          whole.add(define("aten::view(%s, %s)", flat, size()));
        }
        case 12 -> {
          var bits = define("prims::convert_element_type(%s, torch.bfloat16)", pick(whole));
          whole.add(define("prims::convert_element_type(%s, torch.float32)", bits));
        }
        default -> gather();
      }
    }

    private void write() {
      if (own.isEmpty()) {
        few.add(define("aten::clone(%s)", pick("r", "c")));
        define("aten::mul_.Scalar(%s, 2)", few.getLast());
        return;
      }
      var to = pick(own);
      int dim = random.nextInt(2);
      int end = 1 + random.nextInt(dim == 0 ? rows : columns);
      var part =
          random.nextBoolean()
              ? to
              : define("aten::slice.Tensor(%s, %s, %s, %s)", to, dim, random.nextInt(end), end);
      define(
          pick("aten::mul_.Scalar(%s, 2)", "aten::fill_.Scalar(%s, 0.5)", "aten::neg_(%s)"), part);
    }

    /** What is picked is repeated in its turn, or added up. */
    private void gather() {
      var picked = define("aten::gather(%s, 1, i)", pick(whole));
      var sum = define("aten::sum.dim_IntList(%s, [1], True)", picked);
      few.add(sum);
      if (picks == 1) {
        few.add(picked);
      }
    }

    String text() {
      int steps = 4 + random.nextInt(12);
      for (int i = 0; i < steps; i++) {
        step();
      }
      if (random.nextInt(3) == 0) {
        gather();
      }
      var outputs = new ArrayList<String>();
      outputs.add(random.nextBoolean() ? few.getLast() : whole.getLast());
      for (var values : List.of(whole, few, own)) {
        if (!values.isEmpty() && random.nextInt(3) == 0 && !outputs.contains(values.getLast())) {
          outputs.add(values.getLast());
        }
      }
      return """
      graph version 1
      graph t(x: f32[%1$s, %2$s], y: f32[%1$s, %2$s], r: f32[%1$s, 1], c: f32[%2$s], s: f32[1], n: f32[%1$s, %2$s]) {
        t, i = aten::topk(n, %3$s)
      %4$s  return %5$s
      }
      """
          .formatted(rows, columns, picks, body, String.join(", ", outputs));
    }
  }

  private static Map<String, Long> elements(Graph graph) {
    var elements = new HashMap<String, Long>();
    for (var op : graph.ops()) {
      for (var result : op.results()) {
        if (result.isTensor()) {
          elements.put(result.name(), result.tensor().numel());
        }
      }
    }
    return elements;
  }

  /** Whether a tensor has fewer elements than it had. */
  private static boolean hasFewer(Graph made, Graph given) {
    var had = elements(given);
    return elements(made).entrySet().stream()
        .anyMatch(entry -> entry.getValue() < had.getOrDefault(entry.getKey(), 0L));
  }

  @Test
  void giveWhatTheyGave() {
    int repeated = 0;
    int picked = 0;
    for (long seed = SEED; seed < SEED + PROGRAMS; seed++) {
      var text = new Maker(seed).text();
      var given = parse(text);
      var made = MadeUpText.compiled(text);
      var printed = GraphPrinter.print(made);
      repeated += hasFewer(made, given) ? 1 : 0;
      picked += printed.contains("_picked") ? 1 : 0;
      MadeUpText.checkSame(given, made, seed);
    }
    System.out.printf(
        "%s of %s programs repeat later, %s pick earlier, from seed %s%n",
        repeated, PROGRAMS, picked, SEED);
    assertThat(repeated).as("programs that repeat later").isGreaterThan(PROGRAMS / 10);
    assertThat(picked).as("programs that pick earlier").isGreaterThan(PROGRAMS / 30);
  }
}
