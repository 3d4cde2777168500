package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.check.Reference;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Programs that fill buffers piece by piece give what they gave, with and without the buffers.
 * Others with {@code -Dsymplan.seed=N}, more with {@code -Dfuzz=N}.
 */
@Tag("random")
class ForwardCopiesTest {
  private static final long SEED = Fuzz.seed(23);
  private static final int SIZE = 12;

  private final AtomicInteger gone = new AtomicInteger();
  private final AtomicInteger kept = new AtomicInteger();

  /**
   * A random program of a buffer, copies into it, and reads and writes of all there is. A buffer
   * stays if something else writes it.
   */
  private static final class Program {
    private final Random random;
    private final List<String> lines = new ArrayList<>();
    private final List<String> outputs = new ArrayList<>();
    private final List<String> sources = new ArrayList<>(List.of("x", "y"));
    private int names;

    Program(Random random) {
      this.random = random;
    }

    String text() {
      lines.add("b = aten::empty.memory_format([%s], dtype=torch.bfloat16)".formatted(SIZE));
      sources.add(op("aten::neg(x)"));
      sources.add(op("aten::to.dtype(y, torch.bfloat16)"));
      write(0, SIZE);
      for (int i = 3 + random.nextInt(8); i > 0; i--) {
        switch (random.nextInt(8)) {
          case 0, 1, 2 -> {
            int start = random.nextInt(SIZE);
            write(start, 1 + random.nextInt(SIZE - start));
          }
          case 3 ->
              op(
                  "aten::mul_.Scalar(%s, 2)",
                  random.nextInt(3) == 0
                      ? part(1, 5)
                      : sources.get(random.nextInt(sources.size())));
          case 4 -> sources.add(op("aten::neg(%s)", part(0, SIZE)));
          default -> read();
        }
      }
      read();
      if (random.nextInt(4) == 0) {
        outputs.add(part(2, 6));
      }
      return """
      graph version 1

      graph buffer(x: bf16[%s], y: f32[%s]) {
        %s
        return %s
      }
      """
          .formatted(SIZE, SIZE, String.join("\n  ", lines), String.join(", ", outputs));
    }

    private String op(String call, Object... args) {
      var name = "v" + names++;
      lines.add(name + " = " + call.formatted(args));
      return name;
    }

    private static String slice(String of, int start, int size) {
      return "aten::slice.Tensor(%s, 0, %s, %s)".formatted(of, start, start + size);
    }

    private String part(int start, int size) {
      return size == SIZE && random.nextBoolean() ? "b" : op(slice("b", start, size));
    }

    private void write(int start, int size) {
      var source = sources.get(random.nextInt(sources.size()));
      int from = random.nextInt(SIZE - size + 1);
      op("aten::copy_(%s, %s)", part(start, size), op(slice(source, from, size)));
    }

    private void read() {
      int rows = 1 + random.nextInt(3);
      int start = random.nextInt(SIZE - rows + 1);
      int size = (SIZE - start) / rows;
      var seen =
          switch (random.nextInt(4)) {
            case 0 -> op("aten::view(%s, [%s, %s])", part(start, rows * size), rows, size);
            case 1 -> op("aten::t(%s)", op("aten::view(%s, [%s, %s])", part(0, SIZE), SIZE / 4, 4));
            case 2 -> op("aten::as_strided(b, [%s, %s], [%s, 1], %s)", rows, size, size, start);
            default ->
                op(
                    "aten::slice.Tensor(%s, 1, 1, 3)",
                    op("aten::view(%s, [%s, 4])", part(0, SIZE), SIZE / 4));
          };
      outputs.add(op(random.nextBoolean() ? "aten::neg(%s)" : "aten::exp(%s)", seen));
    }
  }

  @Test
  void randomProgramsGiveTheSame() {
    Fuzz.each(600, this::check);
    assertThat(gone.get()).isGreaterThan(Fuzz.times(100));
    assertThat(kept.get()).isGreaterThan(Fuzz.times(50));
  }

  /** The caller may fill an input anew once its graph has run; the buffer holds what was there. */
  @ParameterizedTest
  @ValueSource(strings = {"c = aten::relu(b)", "c = aten::clone(b)\n  w = aten::copy_(e, b)"})
  void buffersOutliveInputs(String first) {
    var program =
        GraphParser.parse(
            new SourceFile(
                "buffer.graph",
                """
                graph version 1

                graph first(x: f32[4], y: f32[4]) {
                  b = aten::empty.memory_format([4], dtype=torch.float32)
                  e = aten::empty.memory_format([4], dtype=torch.float32)
                  v = aten::copy_(b, x)
                  %s
                  symplan::border("second", 1, 1)
                  d = aten::add.Tensor(%s, y)
                  return c, d
                }
                """
                    .formatted(first, first.contains("(e,") ? "e" : "b")));
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withRanks(1))
            .compile(program);
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillInputs(session, new Random(SEED));
      var expected = Reference.evaluate(program.graphs(), plan.groups(), session::input);
      session.run("first");
      session.input(0, 0).orElseThrow().set(77, 2);
      session.run("second");
      assertThat(
              Programs.same(
                  session.output(0, 1).orElseThrow(),
                  expected.outputs().getFirst().get(1).orElseThrow()))
          .isTrue();
    }
  }

  private void check(int number) {
    long seed = SEED + number;
    var random = new Random(seed);
    var text = new Program(random).text();
    var program = GraphParser.parse(new SourceFile("buffer.graph", text));
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withRanks(1))
            .compile(program);
    boolean has =
        plan.forRank(0).graph().ops().stream()
            .anyMatch(op -> op.def().name().name().equals("empty"));
    (has ? kept : gone).incrementAndGet();
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillInputs(session, random);
      Programs.runsAsReference(
          session, program.graphs(), plan, "seed %s%n%s".formatted(seed, text));
    }
  }
}
