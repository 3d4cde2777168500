package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableSet;

/** A pass over all graphs that are planned together. */
public abstract non-sealed class ProgramPass extends Pass {
  protected ProgramPass(String name, ImmutableSet<Fact<?>> needs, ImmutableSet<Fact<?>> gives) {
    super(name, needs, gives);
  }

  /**
   * @throws dev.symplan.ir.diag.CompileException when the program or the options are wrong
   * @throws IllegalStateException when the plan breaks a rule: an error of the planner's
   */
  public abstract PlanState run(PlanState state, PassContext context);
}
