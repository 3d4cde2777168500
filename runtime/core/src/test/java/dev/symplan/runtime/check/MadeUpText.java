package dev.symplan.runtime.check;

import static dev.symplan.runtime.check.LoweredAttentionTest.compare;
import static dev.symplan.runtime.check.LoweredAttentionTest.evaluate;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import java.util.Random;

/** Statements of a program for one rank that is made up. */
abstract class MadeUpText {
  private static final long GOLDEN_RATIO = 0x9E3779B97F4A7C15L;

  final Random random;
  final StringBuilder body = new StringBuilder();
  private int count;

  /**
   * @param seed the same one gives the same program
   */
  MadeUpText(long seed) {
    // Random's first numbers hardly differ between neighbouring seeds.
    this.random = new Random(seed * GOLDEN_RATIO);
  }

  @SafeVarargs
  final <T> T pick(T... choices) {
    return choices[random.nextInt(choices.length)];
  }

  /** {@return the name of a new value} */
  final String define(String text, Object... arguments) {
    var name = "a" + count++;
    body.append("  %s = %s\n".formatted(name, text.formatted(arguments)));
    return name;
  }

  /** {@return the graph that a program's plan runs} */
  static Graph compiled(String text) {
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(1))
        .compile(GraphParser.parse(new SourceFile("t.graph", text)))
        .rankPlans()
        .getFirst()
        .graph();
  }

  /** Fails unless two graphs give the same but for rounding. */
  static void checkSame(Graph given, Graph made, long seed) {
    var expected = evaluate(given);
    var actual = evaluate(made);
    for (int i = 0; i < expected.size(); i++) {
      compare(
          expected.get(i).orElseThrow(),
          actual.get(i).orElseThrow(),
          2e-5,
          "seed %s%n%s%s".formatted(seed, GraphPrinter.print(given), GraphPrinter.print(made)));
    }
  }
}
