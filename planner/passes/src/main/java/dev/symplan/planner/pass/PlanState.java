package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableList;

/**
 * The state of a program after some passes. Immutable: each pass gives a new one.
 *
 * @param graphs by stage of a pipeline, what is planned together; one where all ranks have the same
 *     collectives
 * @param facts the facts about all of them together
 */
public record PlanState(ImmutableList<GraphState> graphs, Facts facts) {

  public <T> T get(Fact<T> fact) {
    return facts.get(fact);
  }

  public <T> PlanState with(Fact<T> fact, T value) {
    return new PlanState(graphs, facts.with(fact, value));
  }
}
