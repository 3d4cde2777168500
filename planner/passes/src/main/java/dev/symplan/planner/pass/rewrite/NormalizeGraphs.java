package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;

/** Makes in-place collectives functional and removes dead code ({@link Normalize}). */
public final class NormalizeGraphs extends GraphPass {
  public NormalizeGraphs() {
    super("normalize", facts(), facts());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    return state.withGraphs(
        state.analyses().stream()
            .map(own -> Normalize.run(own.graph(), own.aliases(), context::groupSize))
            .collect(toImmutableList()));
  }
}
