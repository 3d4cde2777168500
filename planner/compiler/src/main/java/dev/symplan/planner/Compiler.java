package dev.symplan.planner;

import static com.google.common.collect.ImmutableMap.toImmutableMap;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.pt2.ExportArchive;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pass.PassObserver;
import dev.symplan.planner.pass.analysis.GraphChoice;
import dev.symplan.planner.pass.rewrite.Normalize;
import dev.symplan.planner.pipeline.Pipeline;
import dev.symplan.planner.plan.Plan;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/**
 * Compiles graphs into plans.
 *
 * <pre>{@code
 * Plan plan = Compiler.forTarget(Target.H200_X4).compile(Path.of("mlp.graph"));
 * }</pre>
 */
public final class Compiler {
  private final Optional<Target> target;
  private final CompileOptions options;
  private final PassObserver observer;

  private Compiler(Optional<Target> target, CompileOptions options, PassObserver observer) {
    this.target = target;
    this.options = options;
    this.observer = observer;
  }

  /** {@return a compiler for H200s of one host, as many as the ranks need} */
  public static Compiler forDefaultTarget() {
    return new Compiler(Optional.empty(), CompileOptions.DEFAULT, PassObserver.NONE);
  }

  /** {@return a compiler for a machine} */
  public static Compiler forTarget(Target target) {
    return new Compiler(Optional.of(target), CompileOptions.DEFAULT, PassObserver.NONE);
  }

  /** {@return a compiler with other options} */
  public Compiler with(CompileOptions newOptions) {
    return new Compiler(target, newOptions, observer);
  }

  /** {@return a compiler that hands the result of each pass to an observer} */
  public Compiler observedBy(PassObserver newObserver) {
    return new Compiler(target, options, newObserver);
  }

  /** {@return the options it compiles with} */
  public CompileOptions options() {
    return options;
  }

  /**
   * {@return the verified plan of a graph file, FX text, archive or case directory}
   *
   * @throws dev.symplan.ir.diag.CompileException when the input or the options are wrong
   */
  public Plan compile(Path input) {
    var warnings = new ArrayList<Diagnostic>();
    return compile(ProgramReader.read(input, options, warnings::add), warnings);
  }

  /**
   * {@return one verified plan of several graphs that run one after the other, such as the forward
   * and the backward graph of a training step}
   *
   * @param inputs graph files, FX texts, archives or case directories, in the order in which their
   *     graphs run
   * @param ties a file that says which inputs of a graph are an earlier one's outputs or inputs;
   *     without it, the names that AOTAutograd gives say so
   * @throws dev.symplan.ir.diag.CompileException when an input or the options are wrong, or the
   *     graphs do not fit each other
   */
  public Plan compileTogether(List<Path> inputs, Optional<Path> ties) {
    var warnings = new ArrayList<Diagnostic>();
    return compile(ProgramReader.readTogether(inputs, ties, options, warnings::add), warnings);
  }

  /**
   * {@return one verified plan of graphs with a symbolic size, in a version for each of a few
   * values} The version for 128 of a graph {@code prefill} with a size {@code s} is called {@code
   * prefill_s_128}. Versions share the inputs whose types do not depend on the size.
   *
   * @param inputs as {@link #compileTogether} takes them
   * @param ties a file that says which inputs of different graphs are one tensor
   * @param size the name of the size in the inputs
   * @param values at least two, ascending
   * @throws dev.symplan.ir.diag.CompileException when an input or the options are wrong, or no
   *     graph has the size
   */
  public Plan compileBuckets(
      List<Path> inputs, Optional<Path> ties, String size, List<Long> values) {
    var warnings = new ArrayList<Diagnostic>();
    return compile(
        ProgramReader.readBuckets(inputs, ties, size, values, options, warnings::add), warnings);
  }

  /**
   * {@return the graph of each rank as the program has it, to compare a run with} Only ops that
   * other ops define, such as PyTorch's fused collectives, are taken apart.
   *
   * @param plan the plan of the program
   * @throws dev.symplan.ir.diag.CompileException when not every rank has one graph
   */
  public List<Graph> graphs(Program program, Plan plan) {
    var sizes =
        plan.groups().stream().collect(toImmutableMap(ProcessGroup::name, ProcessGroup::size));
    var defined = new IdentityHashMap<Graph, Graph>();
    return GraphChoice.of(program, options).stream()
        .map(
            graph ->
                defined.computeIfAbsent(
                    graph, own -> Normalize.ofDefinedOps(own, name -> size(sizes, name))))
        .toList();
  }

  private static int size(ImmutableMap<String, Integer> sizes, String group) {
    return Objects.requireNonNull(sizes.get(group));
  }

  /**
   * {@return the verified plan of a program}
   *
   * @throws dev.symplan.ir.diag.CompileException when the program or the options are wrong
   */
  public Plan compile(Program program) {
    return compile(program, List.of());
  }

  /**
   * {@return the plan in a plan file, or the plan that {@link #compile(Path)} makes from any other
   * input}
   *
   * @throws dev.symplan.ir.diag.CompileException when the input or the options are wrong
   */
  public Plan load(Path input) {
    if (Files.isDirectory(input) || ExportArchive.isArchive(input)) {
      return compile(input);
    }
    var file = SourceReader.read(input);
    if (PlanFile.isPlan(file.text())) {
      return PlanFile.read(file);
    }
    var warnings = new ArrayList<Diagnostic>();
    return compile(ProgramReader.read(file, options, warnings::add), warnings);
  }

  /**
   * {@return the verified plan of a program}
   *
   * @param warnings the warnings of the reader of the program; the plan keeps them
   * @throws dev.symplan.ir.diag.CompileException when the program or the options are wrong
   */
  public Plan compile(Program program, List<Diagnostic> warnings) {
    return Pipeline.run(program, target, options, warnings, observer);
  }
}
