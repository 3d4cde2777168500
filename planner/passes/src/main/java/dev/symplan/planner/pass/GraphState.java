package dev.symplan.planner.pass;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.base.Preconditions;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.pass.analysis.Analyses;
import java.util.function.Function;

/**
 * The state of one graph of a program after some passes.
 *
 * @param classes the ranks that run the same ops, with their graph; one where all ranks do
 * @param facts the facts about these graphs
 */
public record GraphState(ImmutableList<RankClass> classes, Facts facts) {

  public GraphState {
    Preconditions.checkArgument(!classes.isEmpty(), "no rank runs the graph");
  }

  /** {@return the graph of each class, with what is known about it by itself} */
  public ImmutableList<Analyses> analyses() {
    return classes.stream().map(RankClass::analyses).collect(toImmutableList());
  }

  public ImmutableList<Graph> graphs() {
    return classes.stream().map(RankClass::graph).collect(toImmutableList());
  }

  public <T> T get(Fact<T> fact) {
    return facts.get(fact);
  }

  public <T> GraphState with(Fact<T> fact, T value) {
    return new GraphState(classes, facts.with(fact, value));
  }

  /** {@return the state with another graph for each class, made of the old one} */
  public GraphState mapGraphs(Function<Analyses, Graph> change) {
    return withGraphs(analyses().stream().map(change).collect(toImmutableList()));
  }

  /** {@return the state where operands whose rows are apart are copied together} */
  public GraphState copyingRows() {
    return new GraphState(
        classes.stream()
            .map(own -> new RankClass(own.ranks(), own.analyses().copyingRows()))
            .collect(toImmutableList()),
        facts.lasting());
  }

  /** {@return the state with another graph for each class; what was known of the old ones goes} */
  public GraphState withGraphs(ImmutableList<Graph> graphs) {
    var changed = ImmutableList.<RankClass>builder();
    for (int c = 0; c < classes.size(); c++) {
      changed.add(classes.get(c).with(graphs.get(c)));
    }
    return new GraphState(changed.build(), facts.lasting());
  }
}
