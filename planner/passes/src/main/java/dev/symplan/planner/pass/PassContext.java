package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Maps;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import java.util.List;
import java.util.Objects;

/** What all passes of one compilation read, and none changes. */
public final class PassContext {
  private final Program program;
  private final ImmutableList<Graph> graphOfRank;
  private final Target target;
  private final CompileOptions options;
  private final CostModel costs;
  private final ImmutableMap<String, ProcessGroup> groups;
  private final ImmutableList<Diagnostic> warnings;
  private final PassObserver observer;

  /**
   * @param graphOfRank the graph that each rank runs
   * @param warnings what was noticed when the program was read
   */
  public PassContext(
      Program program,
      List<Graph> graphOfRank,
      Target target,
      CompileOptions options,
      List<Diagnostic> warnings,
      PassObserver observer) {
    this.program = program;
    this.graphOfRank = ImmutableList.copyOf(graphOfRank);
    this.target = target;
    this.options = options;
    this.costs = new CostModel(target);
    this.groups = Maps.uniqueIndex(program.groups(), ProcessGroup::name);
    this.warnings = ImmutableList.copyOf(warnings);
    this.observer = observer;
  }

  public Program program() {
    return program;
  }

  public ImmutableList<Graph> graphOfRank() {
    return graphOfRank;
  }

  public Target target() {
    return target;
  }

  public CompileOptions options() {
    return options;
  }

  public CostModel costs() {
    return costs;
  }

  public ImmutableList<Diagnostic> warnings() {
    return warnings;
  }

  public PassObserver observer() {
    return observer;
  }

  /** {@return a declared group} */
  public ProcessGroup group(String name) {
    return Objects.requireNonNull(groups.get(name));
  }

  /** {@return the number of ranks in each part of a declared group} */
  public int groupSize(String name) {
    return group(name).size();
  }
}
