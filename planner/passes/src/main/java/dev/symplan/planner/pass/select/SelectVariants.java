package dev.symplan.planner.pass.select;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.select.Select.Selection;

/** Picks a variant for each collective ({@link Select}). */
public final class SelectVariants extends GraphPass {
  /** By collective. */
  public static final Fact<ImmutableList<Selection>> SELECTIONS = Fact.ofGraphs("selections");

  /** That no variant shall take a workspace if another one can run, whichever is faster. */
  public static final Fact<Boolean> NO_WORKSPACES = Fact.lasting("no workspaces");

  public SelectVariants() {
    super("select", facts(), facts(SELECTIONS));
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    return state.with(SELECTIONS, Select.run(state, context));
  }
}
