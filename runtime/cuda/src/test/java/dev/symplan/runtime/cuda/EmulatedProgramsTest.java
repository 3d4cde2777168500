package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.CompileOptions;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.Plan;
import dev.symplan.planner.Target;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.Rounding;
import dev.symplan.runtime.tensor.SeededInputs;
import dev.symplan.runtime.tensor.TensorDiff;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/**
 * What is generated for ops on GPUs, run on this machine's processor, against the host backend.
 * Others with {@code -Dsymplan.seed=N}.
 */
class EmulatedProgramsTest {
  private static final long SEED = Long.getLong("symplan.seed", 7_000);
  private static final int PROGRAMS = Integer.getInteger("symplan.graphs", 60);

  private static Plan plan(String text) {
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(1))
        .compile(GraphParser.parse(new SourceFile("test.graph", text)));
  }

  /** Runs all and compares all results. */
  private static void check(List<String> texts) {
    var plans = texts.stream().map(EmulatedProgramsTest::plan).toList();
    List<Executable> executables = plans.stream().map(Lowering::lower).toList();
    var sessions = EmulatedSession.open(executables);
    for (int i = 0; i < plans.size(); i++) {
      try (var emulated = sessions.get(i);
          var host = Session.open(plans.get(i), Backend.HOST)) {
        for (boolean again : List.of(false, true)) {
          fill(emulated, i);
          fill(host, i);
          emulated.run();
          host.run();
          compare(plans.get(i), emulated, host, texts.get(i));
          assertThat(again || executables.get(i) != null).isTrue();
          emulated.turn();
        }
      }
    }
  }

  private static void fill(Session session, int seed) {
    for (int i = 0; i < session.inputNames().size(); i++) {
      SeededInputs.fill(session.input(0, i).orElseThrow(), seed, 0, session.inputNames().get(i));
    }
  }

  private static void compare(Plan plan, Session actual, Session expected, String text) {
    var graph = plan.forRank(0).graph();
    var rounding = Rounding.of(graph);
    for (int i = 0; i < actual.outputCount(); i++) {
      var given = actual.output(0, i).orElseThrow();
      var wanted = expected.output(0, i).orElseThrow();
      var roundedTo = rounding.ofOutput(graph.outputs().get(i));
      var difference = TensorDiff.between(given, wanted);
      assertThat(difference.isWithin(roundedTo))
          .as("output %d: %s%n%s", i, difference, text)
          .isTrue();
    }
  }

  @Test
  void madeUpRows() {
    var texts = new ArrayList<String>();
    for (long seed = SEED; seed < SEED + PROGRAMS; seed++) {
      texts.add(new MadeUpRows(new Random(seed)).text());
    }
    System.out.printf("%d programs from seed %d%n", PROGRAMS, SEED);
    check(texts);
  }

  private static String program(String inputs, String... lines) {
    var names = new ArrayList<String>();
    var body = new StringBuilder();
    for (var line : lines) {
      var made = line.substring(0, line.indexOf(" = "));
      names.addAll(List.of(made.split(", ")));
      body.append("  ").append(line).append('\n');
    }
    return """
    graph version 1
    graph t(%s) {
    %s  return %s
    }
    """
        .formatted(inputs, body, String.join(", ", names));
  }

  @Test
  void reductions() {
    check(
        List.of(
            program(
                "x: f32[3, 5, 70]",
                "a = aten::sum.dim_IntList(x, [-1])",
                "b = aten::sum.dim_IntList(x, [0, 1], True)",
                "c = aten::mean.dim(x, [1])",
                "d = aten::amax(x, [0, 2])",
                "e = aten::amin(x, [1], True)",
                "f = aten::prod.dim_int(x, 2)",
                "g = aten::sum(x)",
                "h = aten::mean(x)",
                "i, j = aten::var_mean.correction(x, [2], correction=0)",
                "k = aten::linalg_vector_norm(x, 2, [1])",
                "l = aten::logsumexp(x, [2])",
                "m = aten::argmax(x, 1)",
                "n = aten::argmin(x)",
                "o, p = aten::max.dim(x, 2, True)",
                "q = aten::cumsum(x, 1)",
                "r = aten::_softmax(x, 1, False)",
                "s = aten::_log_softmax(x, 2, False)"),
            program(
                "x: bf16[2, 3000]",
                "a = aten::sum.dim_IntList(x, [1])",
                "b = aten::_softmax(x, 1, False)",
                "c = aten::mean.dim(x, [0])",
                "d = aten::amax(x)"),
            program(
                "x: i64[6, 40]",
                "a = aten::sum.dim_IntList(x, [1])",
                "b = aten::amax(x, [0])",
                "c = aten::any.dim(x, 1)",
                "d = aten::all(x)",
                "e = aten::cumsum(x, 0)",
                "f = aten::argmin(x, 1)",
                "g = aten::count_nonzero(x)",
                "h = aten::prod(x)"),
            program(
                "x: f32[2, 40000]",
                "a = aten::_softmax(x, 1, False)",
                "b = aten::sum(x)",
                "c = aten::argmax(x, 1)"),
            program(
                "x: bf16[4, 6, 96], w: bf16[96], b: bf16[96]",
                "y, m, r = aten::native_layer_norm(x, [96], w, b, 1e-05)",
                "z, q = aten::_fused_rms_norm(x, [96], w, 1e-06)",
                "l = aten::layer_norm(x, [6, 96])")));
  }
}
