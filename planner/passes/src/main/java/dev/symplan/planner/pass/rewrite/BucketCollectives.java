package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;

/** Makes one collective of several small ones ({@link Bucketing}, {@link Merging}). */
public final class BucketCollectives implements Rewriter {
  @Override
  public Mode mode(RewriteOptions options) {
    return options.bucket();
  }

  @Override
  public Proposal propose(GraphState state, PassContext context) {
    var decided = Bucketing.decide(state, context);
    return new Proposal(
        state.analyses().stream()
            .map(graph -> Merging.run(graph, decided.buckets()))
            .collect(toImmutableList()),
        decided.rewrites());
  }
}
