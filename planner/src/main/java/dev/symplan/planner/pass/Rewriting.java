package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Graph;
import dev.symplan.planner.CompileOptions;
import dev.symplan.planner.Rewrite;
import dev.symplan.planner.Target;
import dev.symplan.planner.cost.CostModel;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToIntFunction;

/** Makes other collectives of some, on all ranks alike: {@link Bucketing}. */
final class Rewriting {

  /** The graphs to plan, and what was decided about them. */
  record Rewritten(ImmutableList<RankGraph> graphs, ImmutableList<Rewrite> rewrites) {}

  private Rewriting() {}

  static Rewritten run(
      List<Graph> normalized,
      List<SpaceChoice> spaces,
      Target target,
      CompileOptions options,
      CostModel costs,
      ToIntFunction<String> groupSize) {
    var graphs = analyze(normalized, spaces, costs, options);
    var select = Select.asking(graphs, target, options, costs, groupSize);
    var bucketed = Bucketing.decide(graphs, options, costs, select, groupSize);
    if (!bucketed.buckets().isEmpty()) {
      var merged = graphs.stream().map(graph -> Merging.run(graph, bucketed.buckets())).toList();
      graphs = analyze(merged, spaces, costs, options);
    }
    return new Rewritten(graphs, bucketed.rewrites());
  }

  private static ImmutableList<RankGraph> analyze(
      List<Graph> graphs, List<SpaceChoice> spaces, CostModel costs, CompileOptions options) {
    var analyzed = new ArrayList<RankGraph>();
    for (int g = 0; g < graphs.size(); g++) {
      analyzed.add(RankGraph.analyze(graphs.get(g), spaces.get(g), costs, options.fusion()));
    }
    return ImmutableList.copyOf(analyzed);
  }
}
