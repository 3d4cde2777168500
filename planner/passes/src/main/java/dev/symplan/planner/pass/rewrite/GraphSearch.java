package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Analyses;

/** One graph in which a pass looks for ops to change, and the facts that it decides by. */
abstract class GraphSearch {
  final Graph graph;
  final ImmutableList<Op> ops;
  final Aliases aliases;
  final DataFlow flow;

  GraphSearch(Analyses own) {
    this.graph = own.graph();
    this.ops = graph.ops();
    this.aliases = own.aliases();
    this.flow = new DataFlow(own);
  }
}
