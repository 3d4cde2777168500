package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.pass.PassObserver.Pass;
import dev.symplan.planner.pass.analysis.RankGraph;
import dev.symplan.planner.pass.rewrite.BucketLives;
import dev.symplan.planner.pass.rewrite.Bucketing;
import dev.symplan.planner.pass.rewrite.Chunking;
import dev.symplan.planner.pass.rewrite.Merging;
import dev.symplan.planner.pass.rewrite.Splitting;
import dev.symplan.planner.pass.select.Select;
import dev.symplan.planner.plan.OrderDecision.Figures;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Rewrite.Reason;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Function;

/**
 * Makes other collectives of some, on all ranks alike: {@link Bucketing}, then {@link Chunking}.
 *
 * <p>Each decides by the collectives that it looks at. What it does to the plan as a whole is seen
 * from a draft: in auto, all is taken back that makes the plan slower, or much larger.
 */
final class RewriteSearch {

  /** A draft of the rewritten graphs, and what was decided about them. */
  record Rewritten(PlanDraft draft, ImmutableList<Rewrite> rewrites) {}

  private final CompileOptions options;
  private final Function<List<Graph>, PlanDraft> draftOf;
  private final ImmutableList.Builder<Rewrite> rewrites = ImmutableList.builder();
  private PlanDraft draft;

  private RewriteSearch(
      List<Graph> normalized, CompileOptions options, Function<List<Graph>, PlanDraft> draftOf) {
    this.options = options;
    this.draftOf = draftOf;
    this.draft = draftOf.apply(normalized);
  }

  static Rewritten run(
      List<Graph> normalized,
      Target target,
      CompileOptions options,
      CostModel costs,
      Function<String, ProcessGroup> groups,
      Function<List<Graph>, PlanDraft> draftOf,
      BiConsumer<Pass, List<Graph>> made,
      PassObserver observer) {
    var rewriting = new RewriteSearch(normalized, options, draftOf);
    observer.time(Pass.BUCKET, () -> rewriting.bucket(target, costs, groups));
    made.accept(Pass.BUCKET, rewriting.graphs());
    observer.time(Pass.CHUNK, () -> rewriting.chunk(target, costs, groups));
    made.accept(Pass.CHUNK, rewriting.graphs());
    return new Rewritten(rewriting.draft, rewriting.rewrites.build());
  }

  private List<Graph> graphs() {
    return draft.graphs().stream().map(RankGraph::graph).toList();
  }

  private PlanDraft bucket(Target target, CostModel costs, Function<String, ProcessGroup> groups) {
    var graphs = draft.graphs();
    var select = Select.asking(graphs, target, options, costs, groups);
    var decided =
        Bucketing.decide(graphs, options, costs, select, name -> groups.apply(name).size());
    if (decided.buckets().isEmpty()) {
      rewrites.addAll(decided.rewrites());
      return draft;
    }
    var merged = graphs.stream().map(graph -> Merging.run(graph, decided.buckets())).toList();
    return judge(merged, decided.rewrites(), options.rewrites().bucket());
  }

  private PlanDraft chunk(Target target, CostModel costs, Function<String, ProcessGroup> groups) {
    var graphs = draft.graphs();
    var select = Select.asking(graphs, target, options, costs, groups);
    var decided =
        Chunking.decide(graphs, options, costs, select, name -> groups.apply(name).size());
    if (decided.chunks().isEmpty()) {
      rewrites.addAll(decided.rewrites());
      return draft;
    }
    var split = ImmutableList.<Graph>builder();
    for (int g = 0; g < graphs.size(); g++) {
      split.add(Splitting.run(graphs.get(g), g, decided.chunks()));
    }
    return judge(split.build(), decided.rewrites(), options.rewrites().chunk());
  }

  private PlanDraft judge(List<Graph> graphs, List<Rewrite> decided, Mode mode) {
    var other = draftOf.apply(graphs);
    var before = draft.figures();
    var after = other.figures();
    if (mode == Mode.ON || isBetter(before, after)) {
      draft = other;
      rewrites.addAll(decided);
      return draft;
    }
    var detail =
        "with all predicted rewrites, the plan takes %s and %s, not %s and %s"
            .formatted(
                Units.micros(after.micros()),
                Units.bytes(after.peakBytes()),
                Units.micros(before.micros()),
                Units.bytes(before.peakBytes()));
    decided.forEach(
        rewrite -> rewrites.add(rewrite.made() ? rewrite.undone(Reason.PLAN, detail) : rewrite));
    return draft;
  }

  private static boolean isBetter(Figures before, Figures after) {
    return after.micros() < before.micros()
        && after.peakBytes() <= BucketLives.limit(before.peakBytes());
  }
}
