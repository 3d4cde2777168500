package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableSet;

/** A pass over one graph, for all ranks that run it. */
public abstract non-sealed class GraphPass extends Pass {
  protected GraphPass(String name, ImmutableSet<Fact<?>> needs, ImmutableSet<Fact<?>> gives) {
    super(name, needs, gives);
  }

  /**
   * @throws dev.symplan.ir.diag.CompileException when the program or the options are wrong
   */
  public abstract GraphState run(GraphState state, PassContext context);
}
