package dev.symplan.cli;

import dev.symplan.planner.Plan;
import dev.symplan.planner.io.PlanFile;
import java.nio.file.Path;

/** Turns what the user named into a plan. */
final class Inputs {
  private Inputs() {}

  /**
   * {@return the plan in a plan file, or of whatever else can be compiled; warnings are printed}
   */
  static Plan plan(Path input, CompileFlags flags, Console console) {
    var plan = flags.compiler().load(input);
    console.warnings(plan.warnings());
    return plan;
  }

  /** {@return whether a file is a plan, which tells no more what it was compiled from} */
  static boolean isPlan(Path input) {
    return PlanFile.isPlan(input);
  }
}
