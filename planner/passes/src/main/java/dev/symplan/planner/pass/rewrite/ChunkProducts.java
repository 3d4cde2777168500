package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;

/** Splits products and the all_reduces of them ({@link Chunking}, {@link Splitting}). */
public final class ChunkProducts implements Rewriter {
  @Override
  public Mode mode(RewriteOptions options) {
    return options.chunk();
  }

  @Override
  public Proposal propose(GraphState state, PassContext context) {
    var decided = Chunking.decide(state, context);
    var graphs = ImmutableList.<Graph>builder();
    for (int c = 0; c < state.classes().size(); c++) {
      graphs.add(Splitting.run(state.analyses().get(c), c, decided.chunks()));
    }
    return new Proposal(graphs.build(), decided.rewrites());
  }
}
