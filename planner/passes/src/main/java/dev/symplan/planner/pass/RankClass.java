package dev.symplan.planner.pass;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.pass.analysis.Analyses;

/**
 * The ranks that run the same graph.
 *
 * @param analyses of the graph as the passes up to now have made it
 */
public record RankClass(ImmutableIntArray ranks, Analyses analyses) {

  public Graph graph() {
    return analyses.graph();
  }

  /** {@return the same ranks, with another graph that computes the same} */
  RankClass with(Graph graph) {
    return new RankClass(ranks, analyses.of(graph));
  }
}
