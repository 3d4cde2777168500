package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableSet;

/**
 * One step from the source to the plan. A pass reads the state that the passes before it made, and
 * gives a new one. It keeps nothing between two calls.
 */
public abstract sealed class Pass permits GraphPass, ProgramPass {
  private final String name;
  private final ImmutableSet<Fact<?>> needs;
  private final ImmutableSet<Fact<?>> gives;

  Pass(String name, ImmutableSet<Fact<?>> needs, ImmutableSet<Fact<?>> gives) {
    this.name = name;
    this.needs = needs;
    this.gives = gives;
  }

  /** {@return the name in files and timings} */
  public final String name() {
    return name;
  }

  /** {@return the facts that the pass reads} */
  public final ImmutableSet<Fact<?>> needs() {
    return needs;
  }

  /** {@return the facts that the pass makes known; empty for one that only changes the graphs} */
  public final ImmutableSet<Fact<?>> gives() {
    return gives;
  }

  protected static ImmutableSet<Fact<?>> facts(Fact<?>... facts) {
    return ImmutableSet.copyOf(facts);
  }

  @Override
  public String toString() {
    return name;
  }
}
