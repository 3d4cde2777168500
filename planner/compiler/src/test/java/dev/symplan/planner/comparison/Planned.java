package dev.symplan.planner.comparison;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import java.util.List;

/** A plan, and what comparisons ask of it: by the names of the graph, on rank 0. */
record Planned(Plan plan) {
  private static final String HEAD =
      """
      graph version 1

      group tp = [0, 1, 2, 3]
      group row = [0, 1], [2, 3]
      group col = [0, 2], [1, 3]

      """;

  /** {@return the plan of a graph of four ranks: all are the group tp, in rows and columns} */
  static Planned graph(String graph, CompileOptions options) {
    return of(HEAD + graph, options);
  }

  static Planned of(String text) {
    return of(text, CompileOptions.DEFAULT);
  }

  static Planned of(String text, CompileOptions options) {
    return of(Target.H200_X4, text, options);
  }

  static Planned of(Target target, String text, CompileOptions options) {
    return of(target, text, options, Mode.OFF);
  }

  /** {@return the plan of a graph of four ranks whose collectives may read rows that are apart} */
  static Planned graph(String graph, CompileOptions options, Mode layouts) {
    return of(Target.H200_X4, HEAD + graph, options, layouts);
  }

  private static Planned of(Target target, String text, CompileOptions options, Mode layouts) {
    return new Planned(
        Compiler.forTarget(target)
            .with(options.withRewrites(RewriteOptions.OFF.withLayouts(layouts)))
            .compile(GraphParser.parse(new SourceFile("comparison.graph", text))));
  }

  static CompileOptions forced(String selector, Variant variant) {
    return CompileOptions.DEFAULT.withVariants(ImmutableMap.of(selector, variant));
  }

  RankPlan rank() {
    return plan.rankPlans().getFirst();
  }

  Value value(String name) {
    return rank().graph().values().stream()
        .filter(value -> value.name().equals(name))
        .findFirst()
        .orElseThrow();
  }

  Buffer buffer(String value) {
    return rank().buffer(value(value));
  }

  /** {@return where a value begins in its arena} */
  long address(String value) {
    return buffer(value).offset() + rank().placement(value(value)).offset();
  }

  /** {@return whether two values have the same first byte} */
  boolean samePlace(String a, String b) {
    return buffer(a).arena() == buffer(b).arena() && address(a) == address(b);
  }

  /** {@return whether two values have bytes in common} */
  boolean overlap(String a, String b) {
    return buffer(a).arena() == buffer(b).arena()
        && address(a) < address(b) + value(b).tensor().bytes()
        && address(b) < address(a) + value(a).tensor().bytes();
  }

  CollectivePlan collective(int k) {
    return rank().collectives().get(k);
  }

  Verdict verdict(int k, Variant variant) {
    return collective(k).verdicts().stream()
        .filter(verdict -> verdict.variant() == variant)
        .findFirst()
        .orElseThrow();
  }

  /** {@return all decisions on tensors of collectives} */
  List<ArgDecision> args() {
    return rank().collectives().stream().flatMap(c -> c.args().stream()).toList();
  }

  /** {@return the decision on an operand} */
  ArgDecision operand(int k, int index) {
    return collective(k).args().get(index);
  }

  /** {@return the decision on the first result} */
  ArgDecision result(int k) {
    return collective(k).args().stream().filter(ArgDecision::result).findFirst().orElseThrow();
  }

  /** {@return the copies that were put in} */
  long copies() {
    return rank().graph().ops().stream()
        .filter(op -> op.def().name().namespace().equals("symplan"))
        .count();
  }

  /** {@return the bytes of both arenas} */
  long bytes() {
    return plan.total().bytes();
  }
}
