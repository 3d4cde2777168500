package dev.symplan.runtime.fuzz;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;

/** Runs a program that was found and shrunk. */
final class FuzzCases {
  private FuzzCases() {}

  static void check(
      String text,
      Target target,
      CompileOptions options,
      long seed,
      ImmutableMap<String, Fill> fills) {
    var program = GraphParser.parse(new SourceFile("found.graph", text));
    var outcome = Differential.check(new FuzzCase(program, target, options, fills, seed));
    assertThat(outcome.finding()).isEmpty();
    assertThat(outcome.refused()).isEmpty();
  }
}
