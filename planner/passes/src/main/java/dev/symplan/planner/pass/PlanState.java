package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableList;

/**
 * The state of a program after some passes. Immutable: each pass gives a new one.
 *
 * @param graphs the graphs that are planned together; one today
 * @param facts the facts about all of them together
 */
public record PlanState(ImmutableList<GraphState> graphs, Facts facts) {

  /** {@return the only graph} */
  public GraphState graph() {
    if (graphs.size() != 1) {
      throw new IllegalStateException("a plan has one graph, not " + graphs.size());
    }
    return graphs.getFirst();
  }

  public <T> T get(Fact<T> fact) {
    return facts.get(fact);
  }

  public <T> PlanState with(Fact<T> fact, T value) {
    return new PlanState(graphs, facts.with(fact, value));
  }
}
