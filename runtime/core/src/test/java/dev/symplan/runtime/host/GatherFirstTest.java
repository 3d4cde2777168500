package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Gathers before elementwise ops, and conversions beside the ops that read them, give the bits of
 * the program as it is written. Others with {@code -Dsymplan.seed=N}, more with {@code -Dfuzz=N}.
 */
@Tag("random")
class GatherFirstTest {
  private static final long SEED = Fuzz.seed(29);

  private static final String LOSS =
      """
      graph version 1

      graph loss(logits: bf16[1, 64, 512], labels: i64[64]) {
        wide = prims::convert_element_type(logits, torch.float32)
        padded = aten::constant_pad_nd(labels, [0, 1], -100)
        rows = aten::view(wide, [64, 512])
        most, all = prims::prepare_softmax_online(rows, 1)
        less = aten::sub.Tensor(rows, most)
        log = aten::log(all)
        logs = aten::sub.Tensor(less, log)
        index = aten::unsqueeze(labels, 1)
        picked = aten::gather(logs, 1, index)
        return picked, padded
      }
      """;

  private final AtomicInteger first = new AtomicInteger();
  private final AtomicInteger last = new AtomicInteger();

  /** A random program of elementwise ops, a gather after them, and ops that go by rows. */
  private static final class Program {
    private final Random random;
    private final List<String> lines = new ArrayList<>();
    private final List<String> outputs = new ArrayList<>();
    private final int rows;
    private final int columns;
    private final int dim;
    private int names;

    Program(Random random) {
      this.random = random;
      this.rows = 1 + random.nextInt(6);
      this.columns = 2 + random.nextInt(9);
      this.dim = random.nextInt(3) == 0 ? 0 : 1;
    }

    private String op(String call, Object... args) {
      var name = "v" + names++;
      lines.add(name + " = " + call.formatted(args));
      return name;
    }

    String text() {
      var value = "x";
      if (random.nextInt(3) > 0) {
        value = op("prims::convert_element_type(%s, torch.float32)", value);
      }
      boolean seen = random.nextInt(3) > 0;
      var sizes = seen ? "[%s, %s]" : "[1, %s, %s]";
      if (seen) {
        value = op("aten::view(%s, [%s, %s])", value, rows, columns);
      }
      if (random.nextInt(2) == 0) {
        outputs.add(op("aten::amax(%s, [%s])", value, seen ? 1 : 2));
      }
      var before = value;
      for (int i = random.nextInt(5); i > 0; i--) {
        value =
            switch (random.nextInt(7)) {
              case 0 -> op("aten::sub.Tensor(%s, y)", value);
              case 1 -> op("aten::mul.Tensor(%s, z)", value);
              case 2 -> op("aten::exp(%s)", value);
              case 3 -> op("aten::mul.Scalar(%s, 0.5)", value);
              case 4 -> op("aten::add.Tensor(%s, %s)", value, before);
              case 5 -> op("aten::mul.Tensor(%s, w)", value);
              default -> op("aten::relu(%s)", value);
            };
      }
      if (random.nextInt(6) == 0) {
        outputs.add(value);
      }
      if (random.nextInt(6) == 0) {
        op("aten::mul_.Scalar(x, 2)");
      }
      var index = seen ? "i" : op("aten::unsqueeze(i, 0)");
      var picked = op("aten::gather(%s, %s, %s)", value, seen ? dim : dim + 1, index);
      outputs.add(random.nextBoolean() ? picked : op("aten::neg(%s)", picked));
      return """
      graph version 1

      graph picks(x: bf16[1, %1$s, %2$s], y: f32[%1$s, 1], z: f32[%2$s], w: f32[1, 1], i: i64[%3$s, %4$s]) {
        %5$s
        return %6$s
      }
      """
          .formatted(
              rows,
              columns,
              dim == 0 ? 1 : rows,
              dim == 0 ? columns : 1 + random.nextInt(2),
              String.join("\n  ", lines),
              String.join(", ", outputs));
    }
  }

  private static Plan plan(String text) {
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(1))
        .compile(GraphParser.parse(new SourceFile("gather.graph", text)));
  }

  private static List<String> ops(Plan plan) {
    return plan.forRank(0).graph().ops().stream().map(op -> op.def().name().toString()).toList();
  }

  /** Neither the logits in f32 nor their logarithms have memory. */
  @Test
  void lossesNeedNoMemoryForWhatTheyDoNotPick() {
    var plan = plan(LOSS);
    assertThat(ops(plan).indexOf("aten::gather"))
        .isLessThan(ops(plan).lastIndexOf("aten::sub.Tensor"));
    assertThat(plan.total().bytes()).isLessThan(64 * 512);
    check(LOSS, new Random(1), 512);
  }

  @Test
  void randomProgramsGiveTheSameBits() {
    Fuzz.each(
        600,
        number -> {
          var random = new Random(SEED + number);
          var drawn = new Program(random);
          check(drawn.text(), random, drawn.dim == 0 ? drawn.rows : drawn.columns);
        });
    assertThat(first.get()).as("gathers first").isGreaterThan(Fuzz.times(100));
    assertThat(last.get()).as("gathers last").isGreaterThan(Fuzz.times(50));
  }

  /**
   * @param bound of the indices, which are the last input
   */
  private void check(String text, Random random, int bound) {
    var program = GraphParser.parse(new SourceFile("gather.graph", text));
    var plan = plan(text);
    boolean isFirst =
        plan.forRank(0).graph().ops().stream()
            .filter(op -> op.def().name().toString().equals("aten::gather"))
            .anyMatch(op -> op.result().name().contains("_picked"));
    (isFirst ? first : last).incrementAndGet();
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillInputs(session, random);
      var indices = Programs.flat(session.input(0, session.inputNames().size() - 1).orElseThrow());
      for (long i = 0; i < indices.type().numel(); i++) {
        indices.set(random.nextInt(bound), i);
      }
      Programs.runsAsReference(session, program.graphs(), plan, text);
    }
  }
}
