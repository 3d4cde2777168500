package dev.symplan.planner.pass;

import java.util.function.Supplier;

/** Sees the state after each pass, and may measure how long the passes take. */
public interface PassObserver {

  /** Does nothing. */
  PassObserver NONE = new PassObserver() {};

  /** {@return the result of the work} The searches run a pass several times: once per candidate. */
  default <T> T time(Pass pass, Supplier<T> work) {
    return work.get();
  }

  /** A pass gave a state that the next one starts from. */
  default void after(Pass pass, PlanState state, PassContext context) {}

  /** A pass gave a state of a candidate, which the search may drop. */
  default void candidate(Pass pass, GraphState state) {}
}
