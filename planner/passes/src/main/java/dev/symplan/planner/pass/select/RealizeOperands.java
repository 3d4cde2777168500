package dev.symplan.planner.pass.select;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;

/**
 * Puts what the selected variants use into symmetric memory ({@link Realize}), and waits for copies
 * between device and host memory.
 */
public final class RealizeOperands extends GraphPass {
  /** By rank class. */
  public static final Fact<ImmutableList<Realized>> REALIZED = Fact.ofGraphs("realized graphs");

  public RealizeOperands() {
    super("realize", facts(SelectVariants.SELECTIONS), facts(REALIZED));
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    var selections = state.get(SelectVariants.SELECTIONS);
    return state.with(
        REALIZED,
        state.analyses().stream()
            .map(graph -> Realize.run(graph, selections, context.costs()))
            .collect(toImmutableList()));
  }
}
