package dev.symplan.planner.pass.analysis;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.cost.CostModel;

/** A normalized graph with what alias analysis found in it. */
public record RankGraph(
    Graph graph,
    Aliases aliases,
    ImmutableList<Collective> collectives,
    OverlapWindows overlap,
    ExternalOutputs externalOutputs,
    OperandConstraints slots) {

  public static RankGraph analyze(Graph graph, SpaceChoice spaces, CostModel costs, boolean fuse) {
    var aliases = Aliases.of(graph);
    var collectives = Collective.allOf(graph.ops());
    var outputs = ExternalOutputs.of(aliases, spaces);
    return new RankGraph(
        graph,
        aliases,
        collectives,
        OverlapWindows.of(graph, aliases, collectives, Fusion.of(graph, aliases, fuse), costs),
        outputs,
        OperandConstraints.of(aliases, collectives, spaces, outputs));
  }
}
