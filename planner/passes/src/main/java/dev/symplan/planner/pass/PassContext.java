package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.graph.Stages;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.machine.Topology.Reach;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.GraphChoice;
import dev.symplan.planner.plan.Rewrite.Reason;
import java.util.List;
import java.util.Optional;

/**
 * The values that all passes of one compilation read and none changes.
 *
 * @param graphOfRank the graph that each rank runs
 * @param groups the declared ones, and those of hierarchical collectives
 * @param stages the different graphs by their collectives; each stage is planned by itself
 * @param warnings from the reading of the program
 */
public record PassContext(
    Program program,
    ImmutableList<Graph> graphOfRank,
    Target target,
    CompileOptions options,
    CostModel costs,
    JobGroups groups,
    Stages stages,
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
        Stages.of(program.groups(), GraphChoice.distinct(graphOfRank)),
        ImmutableList.copyOf(warnings),
        observer);
  }

  /** {@return the same compilation, for a candidate that is planned with other options} */
  public PassContext with(CompileOptions other) {
    return new PassContext(
        program, graphOfRank, target, other, costs, groups, stages, warnings, observer);
  }

  /** {@return a declared group} */
  public ProcessGroup group(String name) {
    return groups.get(name);
  }

  /**
   * {@return whether ranks of several stages meet in a group} Its collectives are the same on all
   * of them only if no stage changes them.
   */
  public boolean isBetweenStages(String group) {
    return stages.between().contains(group);
  }

  /** {@return whether the options or the graph decide how a collective must run} */
  public boolean forcesVariant(Collective collective) {
    var def = collective.op().def();
    return (collective.kind() != Kind.CUSTOM
            && !(def.symmMemArgs().isEmpty() && def.symmMemResults().isEmpty()))
        || options.variants().containsKey(collective.name())
        || (!options.freeVariants() && collective.algorithm().isPresent());
  }

  /** {@return why no rewrite may change a collective; empty if one may} */
  public Optional<Reason> whyFixed(Collective collective) {
    return isBetweenStages(collective.group())
        ? Optional.of(Reason.OTHER_STAGE)
        : forcesVariant(collective) ? Optional.of(Reason.FORCED_VARIANT) : Optional.empty();
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
