package dev.symplan.runtime.check;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.joint.ProgramGraph;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.SeededInputs;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What a session computes once is right in every run. */
class FoldedConstantsTest {
  private static final int PROGRAMS = Integer.getInteger("symplan.graphs", 300);
  private static final long SEED = Fuzz.seed(20_261_128_000L);
  private static final int RANKS = 2;
  private static final ImmutableSet<String> WEIGHTS = ImmutableSet.of("v", "w");

  /** A program of constants, weights and inputs, which ops mix and write into. */
  private static final class Maker extends MadeUpText {
    private final int size;

    /** Square matrices. */
    private final List<String> all = new ArrayList<>(List.of("v", "w", "x", "y"));

    private final List<String> outputs = new ArrayList<>();

    Maker(long seed) {
      super(seed);
      this.size = 4 + 4 * random.nextInt(3);
    }

    /** Late ones are more interesting. */
    private String any() {
      int size = all.size();
      return all.get(size - 1 - Math.min(random.nextInt(size), random.nextInt(size)));
    }

    private String constant() {
      var row = define("aten::arange(%s, dtype=torch.float32)", size);
      return switch (random.nextInt(4)) {
        case 0 -> define("aten::full([%1$s, %1$s], 0.25)", size);
        case 1 -> define("aten::expand(%s, [%2$s, %2$s])", row, size);
        case 2 -> {
          var column = define("aten::unsqueeze(%s, 1)", row);
          var mask = define("aten::le.Tensor(%s, %s)", row, column);
          yield define("prims::convert_element_type(%s, torch.float32)", mask);
        }
        default -> {
          var angles = define("aten::mul.Tensor(%s, 0.1)", row);
          var column = define("aten::unsqueeze(%s, 1)", define("aten::cos(%s)", angles));
          yield define("aten::mul.Tensor(%s, %s)", column, angles);
        }
      };
    }

    private String made() {
      return switch (random.nextInt(12)) {
        case 0, 1 -> constant();
        case 2 -> define(pick("aten::sin(%s)", "aten::neg(%s)", "aten::sigmoid(%s)"), any());
        case 3 ->
            define(
                pick(
                    "aten::add.Tensor(%s, %s)",
                    "aten::maximum(%s, %s)", "aten::mul.Tensor(%s, %s)"),
                any(),
                any());
        case 4 -> define("aten::mul.Tensor(%s, 0.1)", define("aten::mm(%s, %s)", any(), any()));
        case 5 -> define("aten::transpose.int(%s, 0, 1)", any());
        case 6 -> define("aten::clone(%s)", any());
        case 7 -> {
          var top = define("aten::slice.Tensor(%s, 0, 0, %s)", any(), size / 2);
          var rest = define("aten::slice.Tensor(%s, 0, %s, %s)", any(), size / 2, size);
          yield define("aten::cat([%s, %s])", top, rest);
        }
        case 8 -> define("aten::sub.Tensor(%1$s, %2$s)", any(), mean());
        case 9 -> {
          var copy = define("aten::clone(%s)", any());
          define(pick("aten::mul_.Scalar(%s, 2)", "aten::fill_.Scalar(%s, 0.5)"), copy);
          yield copy;
        }
        case 10 -> define("_c10d_functional::wait_tensor(%s)", reduced());
        default -> {
          var part = define("aten::slice.Tensor(%s, 0, 0, 2)", any());
          yield define("aten::slice_scatter(%s, %s, 0, 0, 2)", any(), part);
        }
      };
    }

    private String mean() {
      return define("aten::mean.dim(%s, [1], True)", any());
    }

    private String reduced() {
      var operand = define("aten::mul.Tensor(%s, 0.5)", any());
      return define(
          "_c10d_functional::all_reduce(%s, \"sum\", \"all\")",
          random.nextBoolean() ? operand : define("aten::clone(%s)", any()));
    }

    String text() {
      int steps = 3 + random.nextInt(14);
      all.add(constant());
      for (int i = 0; i < steps; i++) {
        all.add(made());
      }
      outputs.add(all.getLast());
      for (int i = 0; i < 2; i++) {
        var more = any();
        if (!outputs.contains(more)) {
          outputs.add(more);
        }
      }
      var inputs = new ArrayList<String>();
      for (var name : List.of("v", "w", "x", "y")) {
        inputs.add("%s: f32[%2$s, %2$s]".formatted(name, size));
      }
      return """
      graph version 1
      group all = [0, 1]

      graph t(%s) {
      %s  return %s
      }
      """
          .formatted(String.join(", ", inputs), body, String.join(", ", outputs));
    }
  }

  /** One session; the memory of its inputs was handed out once. */
  private record Runs(
      Session session, Program program, Plan plan, String text, List<Input> inputs) {

    private record Input(int rank, String name, HostTensor tensor) {}

    static Runs of(Session session, Program program, Plan plan, String text) {
      var inputs = new ArrayList<Input>();
      for (int rank : session.localRanks()) {
        for (var name : session.inputNames(rank)) {
          inputs.add(new Input(rank, name, session.input(rank, name)));
        }
      }
      return new Runs(session, program, plan, text, inputs);
    }

    void fill(long seed, boolean weights) {
      for (var input : inputs) {
        if (weights || !WEIGHTS.contains(input.name())) {
          SeededInputs.fill(input.tensor(), seed, input.rank(), input.name());
        }
      }
    }

    void run(String what) {
      var graphs = IntStream.range(0, RANKS).mapToObj(_ -> program.graphs().getFirst()).toList();
      int count = inputs.size() / RANKS;
      var expected =
          Reference.evaluate(
                  graphs,
                  plan.groups(),
                  (rank, index) -> Optional.of(inputs.get(rank * count + index).tensor()))
              .outputs();
      session.run();
      for (int rank = 0; rank < RANKS; rank++) {
        for (int i = 0; i < session.outputCount(); i++) {
          var wanted = expected.get(rank).get(i).orElseThrow();
          LoweredAttentionTest.compare(
              wanted, session.output(rank, i).orElseThrow(), 2e-4, what + "\n" + text);
        }
      }
    }
  }

  private static boolean hasSetup(Plan plan) {
    return plan.rankPlans().stream().anyMatch(own -> ProgramGraph.setupEnd(own.graph()) >= 0);
  }

  @Test
  void everyRunFindsWhatTheSetupMade() {
    int folded = 0;
    int weights = 0;
    for (long seed = SEED; seed < SEED + PROGRAMS; seed++) {
      var text = new Maker(seed).text();
      var program = GraphParser.parse(new SourceFile("t.graph", text));
      boolean foldsWeights = seed % 2 == 0;
      var options =
          CompileOptions.DEFAULT
              .withRanks(RANKS)
              .withFoldWeights(foldsWeights ? WEIGHTS : ImmutableSet.of());
      var plan = Compiler.forTarget(Target.H200_X4).with(options).compile(program);
      folded += hasSetup(plan) ? 1 : 0;
      weights += hasSetup(plan) && foldsWeights ? 1 : 0;
      try (var session = Session.open(plan, new HostBackend())) {
        var runs = Runs.of(session, program, plan, text);
        for (int run = 0; run < 3; run++) {
          runs.fill(seed + run, run == 0 || !foldsWeights);
          runs.run("seed %s, run %s".formatted(seed, run));
        }
        runs.fill(seed + 3, true);
        session.setUpAgain();
        runs.run("seed %s, set up again".formatted(seed));
        WEIGHTS.forEach(name -> session.input(0, name));
        runs.fill(seed + 4, true);
        runs.run("seed %s, weights handed out".formatted(seed));
      }
    }
    System.out.printf(
        "%s of %s programs have a setup, %s of these may fold weights, from seed %s%n",
        folded, PROGRAMS, weights, SEED);
    assertThat(folded).as("programs with a setup").isGreaterThan(PROGRAMS / 3);
    assertThat(weights).as("programs that may fold weights").isGreaterThan(PROGRAMS / 6);
  }
}
