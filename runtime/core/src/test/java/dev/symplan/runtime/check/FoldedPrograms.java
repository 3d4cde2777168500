package dev.symplan.runtime.check;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.joint.ProgramGraph;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.SeededInputs;
import java.util.ArrayList;
import java.util.List;

/** A made-up program of constants, weights and inputs, and a plan whose sessions fold some. */
public record FoldedPrograms(String text, Program program, Plan plan, boolean foldsWeights) {
  static final int RANKS = 2;
  static final ImmutableSet<String> WEIGHTS = ImmutableSet.of("v", "w");

  /** Ops mix constants, weights and inputs, and write into copies of them. */
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

  /**
   * {@return a program and its plan}
   *
   * @param seed even ones have plans that fold weights
   */
  public static FoldedPrograms of(long seed) {
    var text = new Maker(seed).text();
    var program = GraphParser.parse(new SourceFile("t.graph", text));
    boolean foldsWeights = seed % 2 == 0;
    var options =
        CompileOptions.DEFAULT
            .withRanks(RANKS)
            .withFoldWeights(foldsWeights ? WEIGHTS : ImmutableSet.of());
    var plan = Compiler.forTarget(Target.H200_X4).with(options).compile(program);
    return new FoldedPrograms(text, program, plan, foldsWeights);
  }

  /** {@return whether a session computes something once} */
  public boolean hasSetup() {
    return plan.rankPlans().stream().anyMatch(own -> ProgramGraph.setupEnd(own.graph()) >= 0);
  }

  /** Fails unless each run of a session gives the bits that a fresh session gives. */
  public void check(Backend backend) {
    try (var session = Session.open(plan, backend)) {
      for (int run = 0; run < 4; run++) {
        boolean weights = run % 2 == 0;
        fill(session, run, weights);
        session.run();
        try (var fresh = Session.open(plan, backend)) {
          fill(fresh, run - run % 2, true);
          fill(fresh, run, weights);
          fresh.run();
          compare(session, fresh, "run %s%n%s".formatted(run, text));
        }
      }
    }
  }

  private static void fill(Session session, long seed, boolean weights) {
    for (int rank : session.localRanks()) {
      for (var name : session.inputNames(rank)) {
        if (weights || !WEIGHTS.contains(name)) {
          SeededInputs.fill(session.input(rank, name), seed, rank, name);
        }
      }
    }
  }

  private static void compare(Session session, Session fresh, String what) {
    for (int rank : session.localRanks()) {
      for (int i = 0; i < session.outputCount(); i++) {
        var found = copy(session.output(rank, i).orElseThrow());
        var wanted = copy(fresh.output(rank, i).orElseThrow());
        assertThat(found.memory().mismatch(wanted.memory())).as(what).isEqualTo(-1);
      }
    }
  }

  private static HostTensor copy(HostTensor tensor) {
    return tensor.copyAs(tensor.type().contiguous());
  }
}
