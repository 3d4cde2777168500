package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.joint.ProgramGraph;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.RankClass;
import dev.symplan.planner.pass.analysis.Analyses;

/**
 * Makes in-place collectives functional ({@link Normalize}), leaves out buffers that only hold what
 * was copied into them ({@link ForwardCopies}), gives ops sizes that read nothing else of a tensor
 * ({@link SizedCreation}), and removes dead code. Finds permutations among exchanges ({@link
 * Permutations}). Takes the borders between graphs away where ops may move across them.
 */
public final class NormalizeGraphs extends GraphPass {
  public NormalizeGraphs() {
    super("normalize", facts(), facts());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    var graphs = state.analyses().stream().map(own -> run(own, context)).collect(toImmutableList());
    var ranks = state.classes().stream().map(RankClass::ranks).toList();
    return state.withGraphs(Permutations.found(graphs, ranks, context));
  }

  private static Graph run(Analyses own, PassContext context) {
    var functional =
        own.hasOp(Normalize::mayChange)
            ? Normalize.run(
                own.graph(),
                own.aliases(),
                context::groupSize,
                group -> context.reach(group).isWithinDomain() && !context.isBetweenStages(group))
            : Normalize.removeDeadCode(own.graph());
    var copied = ForwardCopies.run(own.of(functional));
    var forwarded = own.hasOp(SizedCreation::is) ? SizedCreation.run(copied) : copied;
    boolean bordered = own.hasOp(def -> def.has(OpTrait.BORDER));
    return bordered ? withoutBorders(forwarded, context.options().acrossGraphs()) : forwarded;
  }

  /** FoldConstants decides anew what a session runs once. */
  private static Graph withoutBorders(Graph graph, boolean acrossGraphs) {
    return graph.withOps(
        graph.ops().stream()
            .filter(
                op -> !ProgramGraph.endsSetup(op) && !(acrossGraphs && ProgramGraph.isBorder(op)))
            .collect(toImmutableList()));
  }
}
