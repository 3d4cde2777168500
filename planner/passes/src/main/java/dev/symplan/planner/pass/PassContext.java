package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Maps;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.machine.Topology.Reach;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pass.analysis.Collective;
import java.util.List;
import java.util.Objects;

/**
 * The values that all passes of one compilation read and none changes.
 *
 * @param graphOfRank the graph that each rank runs
 * @param topology where the ranks are
 * @param groups by name
 * @param reaches how the ranks of each group lie
 * @param warnings from the reading of the program
 */
public record PassContext(
    Program program,
    ImmutableList<Graph> graphOfRank,
    Target target,
    Topology topology,
    CompileOptions options,
    CostModel costs,
    ImmutableMap<String, ProcessGroup> groups,
    ImmutableMap<String, Reach> reaches,
    ImmutableList<Diagnostic> warnings,
    PassObserver observer) {

  public PassContext(
      Program program,
      List<Graph> graphOfRank,
      Target target,
      Topology topology,
      CompileOptions options,
      List<Diagnostic> warnings,
      PassObserver observer) {
    this(
        program,
        ImmutableList.copyOf(graphOfRank),
        target,
        topology,
        options,
        new CostModel(target),
        Maps.uniqueIndex(program.groups(), ProcessGroup::name),
        program.groups().stream()
            .collect(ImmutableMap.toImmutableMap(ProcessGroup::name, topology::reach)),
        ImmutableList.copyOf(warnings),
        observer);
  }

  /** {@return the same compilation, for a candidate that is planned with other options} */
  public PassContext with(CompileOptions other) {
    return new PassContext(
        program, graphOfRank, target, topology, other, costs, groups, reaches, warnings, observer);
  }

  /** {@return a declared group} */
  public ProcessGroup group(String name) {
    return Objects.requireNonNull(groups.get(name));
  }

  /** {@return whether the options or the graph decide how a collective must run} */
  public boolean forcesVariant(Collective collective) {
    var def = collective.op().def();
    return (collective.kind() != Kind.CUSTOM
            && !(def.symmMemArgs().isEmpty() && def.symmMemResults().isEmpty()))
        || options.variants().containsKey(collective.name())
        || (!options.freeVariants() && collective.algorithm().isPresent());
  }

  /** {@return how the ranks of a declared group lie} */
  public Reach reach(String group) {
    return Objects.requireNonNull(reaches.get(group));
  }

  /** {@return the number of ranks in each part of a declared group} */
  public int groupSize(String name) {
    return group(name).size();
  }
}
