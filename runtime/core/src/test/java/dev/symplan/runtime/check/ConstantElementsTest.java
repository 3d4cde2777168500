package dev.symplan.runtime.check;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.ConstantElements;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Masks that the compiler finds out about are as the host computes them. */
class ConstantElementsTest {
  private static final int PROGRAMS = 400;
  private static final long SEED = 20_261_123;

  /** Random programs without inputs; each line reads what those before it made. */
  private static final class Maker {
    private final Random random;
    private final int rows;
    private final int columns;
    private final StringBuilder text = new StringBuilder();
    private final List<String> numbers = new ArrayList<>();
    private final List<String> bools = new ArrayList<>();
    private int count;

    Maker(long seed) {
      this.random = new Random(seed);
      this.rows = 1 + random.nextInt(9);
      this.columns = 1 + random.nextInt(random.nextBoolean() ? 9 : 70);
    }

    private String line(String op) {
      var name = "v" + count++;
      text.append("  ").append(name).append(" = aten::").append(op).append('\n');
      return name;
    }

    private String any(List<String> of) {
      return of.get(random.nextInt(of.size()));
    }

    private String one(String... of) {
      return of[random.nextInt(of.length)];
    }

    private int number() {
      return random.nextInt(11) - 5;
    }

    String text() {
      var i = line("arange.start_step(%s, %s, 2)".formatted(-columns, columns));
      numbers.add(line("unsqueeze(%s, 0)".formatted(i)));
      var j = line("arange(%s)".formatted(rows));
      numbers.add(line("unsqueeze(%s, 1)".formatted(j)));
      numbers.add(line("full([%s, %s], %s)".formatted(rows, columns, number())));
      bools.add(line("ones([%s, %s], dtype=torch.bool)".formatted(rows, columns)));
      for (int step = 0; step < 3 + random.nextInt(8); step++) {
        step();
      }
      var last = random.nextBoolean() ? bools.getLast() : numbers.getLast();
      return "graph version 1\ngraph t() {\n%s  return %s\n}\n".formatted(text, last);
    }

    private void step() {
      switch (random.nextInt(16)) {
        case 0, 1 ->
            bools.add(
                line(
                    "%s.Tensor(%s, %s)"
                        .formatted(
                            one("le", "lt", "ge", "gt", "eq", "ne"), any(numbers), any(numbers))));
        case 2 ->
            bools.add(
                line(
                    "%s.Scalar(%s, %s)"
                        .formatted(one("le", "lt", "ge", "gt"), any(numbers), number())));
        case 3 ->
            numbers.add(
                line(
                    "%s.Tensor(%s, %s)"
                        .formatted(one("add", "sub", "mul"), any(numbers), any(numbers))));
        case 4 ->
            bools.add(
                line(
                    "%s.Tensor(%s, %s)"
                        .formatted(one("bitwise_and", "bitwise_or"), any(bools), any(bools))));
        case 5 ->
            bools.add(line("%s(%s)".formatted(one("logical_not", "bitwise_not"), any(bools))));
        case 6 ->
            numbers.add(
                line("where.self(%s, %s, %s)".formatted(any(bools), any(numbers), any(numbers))));
        case 7 ->
            numbers.add(
                line(
                    "masked_fill.Scalar(%s, %s, %s)"
                        .formatted(
                            line("expand(%s, [%s, %s])".formatted(any(numbers), rows, columns)),
                            any(bools),
                            number())));
        case 8 -> {
          var whole = line("expand(%s, [%s, %s])".formatted(any(numbers), rows, columns));
          numbers.add(line("%s(%s, %s)".formatted(one("tril", "triu"), whole, number())));
        }
        case 9 -> numbers.add(line("cumsum(%s, 1)".formatted(any(numbers))));
        case 10 -> {
          var wide = line("cat([%1$s, %1$s], -1)".formatted(numbers.getLast()));
          numbers.add(line("slice.Tensor(%s, 1, 0, 1)".formatted(wide)));
        }
        case 11 -> {
          var places = line("full([%s, 1], 0)".formatted(rows));
          numbers.add(
              line("index.Tensor(%s, [%s, %s])".formatted(numbers.getFirst(), places, places)));
        }
        case 12 -> {
          // From the end to the beginning, or all by negative indices.
          var places =
              random.nextBoolean()
                  ? line("arange.start_step(%s, -1, -1)".formatted(columns - 1))
                  : line("arange.start_step(%s, 0, 1)".formatted(-columns));
          var first = line("full([%s, 1], -1)".formatted(rows));
          numbers.add(
              line("index.Tensor(%s, [%s, %s])".formatted(numbers.getFirst(), first, places)));
        }
        case 13 ->
            bools.add(
                line(
                    "%s(%s, %s)"
                        .formatted(
                            one("logical_and", "logical_or"),
                            any(random.nextBoolean() ? bools : numbers),
                            any(numbers))));
        case 14 ->
            bools.add(
                line(
                    "%s.Tensor(%s, %s)"
                        .formatted(one("add", "mul", "eq", "le"), any(bools), any(bools))));
        case 15 ->
            numbers.add(
                line(
                    "_to_copy(%s, dtype=torch.%s)"
                        .formatted(any(bools), one("int64", "int32", "float32", "float16"))));
        default -> throw new IllegalStateException();
      }
    }
  }

  @Test
  void areWhatTheHostComputes() {
    int known = 0;
    for (long seed = SEED; seed < SEED + PROGRAMS; seed++) {
      var text = new Maker(seed).text();
      var graph = GraphParser.parse(new SourceFile("t.graph", text)).graphs().getFirst();
      var expected = computed(graph);
      var rows = new ArrayList<double[]>();
      boolean all =
          new ConstantElements(graph, Aliases.of(graph))
              .all(
                  graph.outputValues().getFirst(),
                  (_, row) ->
                      rows.add(IntStream.range(0, row.length()).mapToDouble(row::get).toArray()));
      if (all) {
        known++;
        var type = expected.type();
        var actual = rows.stream().flatMapToDouble(java.util.Arrays::stream).toArray();
        assertThat((long) actual.length).as(text).isEqualTo(type.numel());
        for (int i = 0; i < actual.length; i++) {
          int columns = rows.getFirst().length;
          assertThat(actual[i])
              .as("element %s of%n%s", i, text)
              .isEqualTo(expected.get(i / columns, i % columns));
        }
      }
    }
    assertThat(known).as("programs whose result is known").isGreaterThan(PROGRAMS * 3 / 4);
  }

  private static HostTensor computed(Graph graph) {
    return Reference.evaluate(List.of(graph), List.of(), (_, _) -> Optional.empty())
        .outputs()
        .getFirst()
        .getFirst()
        .orElseThrow();
  }
}
