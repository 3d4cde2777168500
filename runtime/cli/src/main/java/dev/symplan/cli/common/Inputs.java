package dev.symplan.cli.common;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.PeakAdvice;
import dev.symplan.planner.report.Row;
import dev.symplan.runtime.check.Reference;
import java.nio.file.Path;
import java.util.List;

/** Turns what the user named into a plan. */
public final class Inputs {
  private Inputs() {}

  /**
   * {@return the plan in a plan file, or of whatever else can be compiled; warnings are printed}
   */
  public static Plan plan(Path input, CompileFlags flags, Console console) {
    if (isPlan(input)) {
      flags.requireNone(input);
    }
    return load(input, flags, console);
  }

  /** {@return two as {@link #plan}, to be compared; only one of them may have to be compiled} */
  public static ImmutableList<Plan> plans(
      Path one, Path other, CompileFlags flags, Console console) {
    if (isPlan(one) && isPlan(other)) {
      flags.requireNone(one);
    }
    return ImmutableList.of(load(one, flags, console), load(other, flags, console));
  }

  private static Plan load(Path input, CompileFlags flags, Console console) {
    var plan = flags.compiler().load(input);
    console.warnings(plan.warnings());
    return plan;
  }

  /** {@return whether a file is a plan, which no longer says what it was compiled from} */
  public static boolean isPlan(Path input) {
    return PlanFile.isPlan(input);
  }

  /**
   * {@return each rank's graph as an input has it; that in a plan file, which passes have changed}
   *
   * @param flags with which the plan was compiled
   */
  public static List<Graph> graphs(Path input, CompileFlags flags, Plan plan) {
    if (isPlan(input)) {
      return Reference.graphs(plan);
    }
    var compiler = flags.compiler();
    return compiler.graphs(ProgramReader.read(input, compiler.options(), _ -> {}), plan);
  }

  /** {@return the words for the evaluation of these graphs} */
  public static String evaluation(Path input) {
    return isPlan(input) ? "evaluation of the plan's graph" : "evaluation without a plan";
  }

  /** {@return the changes that would lower the peak of a graph's plan; each takes a compilation} */
  public static ImmutableList<Row> advice(Path input, CompileFlags flags, Plan plan) {
    var compiler = flags.compiler();
    return PeakAdvice.of(
        plan, compiler.options(), options -> compiler.with(options).compile(input));
  }
}
