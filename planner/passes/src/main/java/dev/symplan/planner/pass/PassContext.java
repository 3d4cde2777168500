package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableList;
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

/**
 * The values that all passes of one compilation read and none changes.
 *
 * @param graphOfRank the graph that each rank runs
 * @param groups the declared ones, and those of hierarchical collectives
 * @param warnings from the reading of the program
 */
public record PassContext(
    Program program,
    ImmutableList<Graph> graphOfRank,
    Target target,
    CompileOptions options,
    CostModel costs,
    JobGroups groups,
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
        options,
        new CostModel(target),
        JobGroups.of(program.groups(), topology),
        ImmutableList.copyOf(warnings),
        observer);
  }

  /** {@return the same compilation, for a candidate that is planned with other options} */
  public PassContext with(CompileOptions other) {
    return new PassContext(program, graphOfRank, target, other, costs, groups, warnings, observer);
  }

  /** {@return a declared group} */
  public ProcessGroup group(String name) {
    return groups.get(name);
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
    return groups.reach(group);
  }

  /** {@return the number of ranks in each part of a declared group} */
  public int groupSize(String name) {
    return group(name).size();
  }
}
