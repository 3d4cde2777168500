package dev.symplan.planner.verify;

import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.LeastMemory;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import java.util.OptionalLong;

/** Plans in the least memory that would do. */
final class PlannedLow {
  private PlannedLow() {}

  /**
   * @param inputs where they are
   */
  static Plan of(String text, MemorySpace inputs) {
    var program = GraphParser.parse(new SourceFile("step.graph", text));
    var compiler = Compiler.forTarget(Target.H200_X4);
    var options = CompileOptions.DEFAULT.withInputs(inputs);
    var least =
        LeastMemory.of(
            bytes ->
                compiler.with(options.withMemoryLimit(OptionalLong.of(bytes))).compile(program));
    return compiler.with(options.withMemoryLimit(least)).compile(program);
  }
}
