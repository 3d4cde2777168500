package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.testkit.LeastMemory;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import java.util.OptionalLong;

/**
 * A program with what is needed to run it again.
 *
 * @param fills the elements of inputs, by name; those not named get anything
 * @param seed of the inputs' numbers
 */
record FuzzCase(
    Program program,
    Target target,
    CompileOptions options,
    ImmutableMap<String, Fill> fills,
    long seed) {

  Plan plan(Program of) {
    return Compiler.forTarget(target).with(options).compile(of);
  }

  Plan plan() {
    return plan(program);
  }

  FuzzCase with(Program changed) {
    return new FuzzCase(changed, target, options, fills, seed);
  }

  FuzzCase with(CompileOptions changed) {
    return new FuzzCase(program, target, changed, fills, seed);
  }

  FuzzCase with(Target changed) {
    return new FuzzCase(program, changed, options, fills, seed);
  }

  /** {@return the case with the lowest memory limit that the compiler accepts} */
  FuzzCase inLeastMemory() {
    return with(
        options.withMemoryLimit(
            LeastMemory.of(bytes -> with(options.withMemoryLimit(OptionalLong.of(bytes))).plan())));
  }

  Graph graphOf(int rank) {
    return program.graphs().stream().filter(g -> g.runsOn(rank)).findFirst().orElseThrow();
  }

  int ops() {
    return program.graphs().stream().mapToInt(graph -> graph.ops().size()).sum();
  }

  /** {@return the program, and the lines of Java that run it} */
  String text() {
    var indented = GraphPrinter.print(program).indent(8);
    return """
    seed %sL, target %s
    %s
    inputs: %s

      @Test
      void TODO() {
        var text =
            \"""
    %s        \""";
        var options = CompileOptions.DEFAULT%s;
        FuzzCases.check(text, Target.ofName("%s").orElseThrow(), options, %sL, %s);
      }
    """
        .formatted(
            seed,
            target.name(),
            options,
            fills,
            indented,
            optionCalls(),
            target.name(),
            seed,
            fillCalls());
  }

  private String optionCalls() {
    var out = new StringBuilder();
    out.append(".withRanks(").append(options.ranks()).append(')');
    out.append(".withInputs(MemorySpace.").append(options.inputs()).append(')');
    out.append(".withOutputs(MemorySpace.").append(options.outputs()).append(')');
    options
        .hosts()
        .ifPresent(
            hosts ->
                out.append(
                    ".withHosts(Hosts.parse(\"%s\").orElseThrow())".formatted(hosts.text())));
    out.append(options.overlap() ? "" : ".withOverlap(false)");
    out.append(options.fusion() ? "" : ".withFusion(false)");
    out.append(options.epilogues() ? "" : ".withEpilogues(false)");
    out.append(options.acrossGraphs() ? ".withAcrossGraphs(true)" : "");
    if (!options.replicated().isEmpty()) {
      out.append(".withReplicated(ImmutableSet.of(\"");
      out.append(String.join("\", \"", options.replicated())).append("\"))");
    }
    options
        .prefetch()
        .ifPresent(depth -> out.append(".withPrefetch(OptionalInt.of(%s))".formatted(depth)));
    options
        .memoryLimit()
        .ifPresent(bytes -> out.append(".withMemoryLimit(OptionalLong.of(%sL))".formatted(bytes)));
    out.append(".withObjective(Objective.").append(options.objective()).append(')');
    out.append(options.multicast() ? ".withMulticast(true)" : "");
    out.append(
        ".withRewrites(new RewriteOptions(Mode.%s, Mode.%s, Mode.%s, Mode.%s, Mode.%s))"
            .replace("Mode.", "RewriteOptions.Mode.")
            .formatted(
                options.rewrites().bucket(),
                options.rewrites().chunk(),
                options.rewrites().layouts(),
                options.rewrites().hierarchical(),
                options.rewrites().sequenceParallel()));
    out.append(".withReorderBudget(OptionalDouble.");
    out.append(
        options.reorderBudget().isEmpty()
            ? "empty())"
            : "of(%s))".formatted(options.reorderBudget().getAsDouble()));
    if (!options.spaces().isEmpty()) {
      out.append(".withSpaces(ImmutableMap.of(");
      out.append(
          String.join(
              ", ",
              options.spaces().entrySet().stream()
                  .map(e -> "\"%s\", MemorySpace.%s".formatted(e.getKey(), e.getValue()))
                  .toList()));
      out.append("))");
    }
    if (!options.variants().isEmpty()) {
      out.append(".withVariants(ImmutableMap.of(");
      out.append(
          String.join(
              ", ",
              options.variants().entrySet().stream()
                  .map(e -> "\"%s\", Variant.%s".formatted(e.getKey(), e.getValue()))
                  .toList()));
      out.append("))");
    }
    return out.toString();
  }

  private String fillCalls() {
    return "ImmutableMap.of("
        + String.join(
            ", ",
            fills.entrySet().stream()
                .filter(e -> e.getValue().kind() != Fill.Kind.ANY)
                .map(
                    e ->
                        "\"%s\", new Fill(Fill.Kind.%s, %s)"
                            .formatted(e.getKey(), e.getValue().kind(), e.getValue().bound()))
                .toList())
        + ")";
  }
}
