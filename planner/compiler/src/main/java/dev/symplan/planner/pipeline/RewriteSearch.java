package dev.symplan.planner.pipeline;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.rewrite.BucketCollectives;
import dev.symplan.planner.pass.rewrite.BucketLives;
import dev.symplan.planner.pass.rewrite.ChunkProducts;
import dev.symplan.planner.pass.rewrite.FoldLayouts;
import dev.symplan.planner.pass.rewrite.Hierarchy;
import dev.symplan.planner.pass.rewrite.Rewriter;
import dev.symplan.planner.pass.rewrite.SequenceParallel;
import dev.symplan.planner.pass.select.ForcedVariants;
import dev.symplan.planner.plan.Frontier;
import dev.symplan.planner.plan.OrderDecision.Figures;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Rewrite.Reason;
import java.util.stream.IntStream;

/**
 * Makes other collectives of some, on all ranks alike.
 *
 * <p>A rewriter decides by the collectives that it looks at. What that does to the graph as a whole
 * is seen from a draft: in auto, all is taken back that makes it slower, much larger, or larger for
 * too small a gain, unless the caller names one of the collectives that were made. The draft that
 * is not taken stays a candidate of {@link OrderSearch}: it may be the fastest, or need least.
 */
final class RewriteSearch extends GraphPass {
  /** Which collectives became one with others, and which did not. */
  static final Fact<ImmutableList<Rewrite>> BUCKETS = Fact.lasting("buckets");

  /** Which collectives were split, and which were not. */
  static final Fact<ImmutableList<Rewrite>> CHUNKS = Fact.lasting("chunks");

  /** Which collectives took over the copies around them, and which did not. */
  static final Fact<ImmutableList<Rewrite>> LAYOUTS = Fact.lasting("layouts");

  /** Which collectives became several within NVLink domains and across them, and which did not. */
  static final Fact<ImmutableList<Rewrite>> HIERARCHIES = Fact.lasting("hierarchies");

  /** Behind which collectives ops run on shares of the rows, and behind which they do not. */
  static final Fact<ImmutableList<Rewrite>> SHARED_ROWS = Fact.lasting("shared rows");

  private static final ImmutableList<Fact<ImmutableList<Rewrite>>> DECISIONS =
      ImmutableList.of(LAYOUTS, BUCKETS, CHUNKS, SHARED_ROWS, HIERARCHIES);

  /** Drafts that were not taken, though the caller allows them. */
  private static final Fact<ImmutableList<GraphState>> DROPPED = Fact.lasting("dropped drafts");

  private final Rewriter rewriter;
  private final Fact<ImmutableList<Rewrite>> decided;
  private final ImmutableList<GraphPass> draft;

  private RewriteSearch(
      String name,
      Rewriter rewriter,
      Fact<ImmutableList<Rewrite>> decided,
      ImmutableList<GraphPass> draft) {
    super(name, facts(), facts(decided));
    this.rewriter = rewriter;
    this.decided = decided;
    this.draft = draft;
  }

  static RewriteSearch layouts(ImmutableList<GraphPass> draft) {
    return new RewriteSearch("layouts", new FoldLayouts(), LAYOUTS, draft);
  }

  static RewriteSearch bucket(ImmutableList<GraphPass> draft) {
    return new RewriteSearch("bucket", new BucketCollectives(), BUCKETS, draft);
  }

  static RewriteSearch chunk(ImmutableList<GraphPass> draft) {
    return new RewriteSearch("chunk", new ChunkProducts(), CHUNKS, draft);
  }

  static RewriteSearch sequenceParallel(ImmutableList<GraphPass> draft) {
    return new RewriteSearch("sequence_parallel", new SequenceParallel(), SHARED_ROWS, draft);
  }

  static RewriteSearch hierarchies(ImmutableList<GraphPass> draft) {
    return new RewriteSearch("hierarchical", new Hierarchy(), HIERARCHIES, draft);
  }

  /** {@return the drafts that all searches before this state did not take} */
  static ImmutableList<GraphState> dropped(GraphState state) {
    return state.facts().find(DROPPED).orElse(ImmutableList.of());
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    var before = Pipeline.runAll(draft, state, context);
    var mode = rewriter.mode(context.options().rewrites());
    if (mode == Mode.OFF) {
      return before.with(decided, ImmutableList.of());
    }
    var proposal = rewriter.propose(before, context);
    if (isUnchanged(state.graphs(), proposal.graphs())) {
      return before.with(decided, proposal.rewrites());
    }
    var after = Pipeline.runAll(draft, state.withGraphs(proposal.graphs()), context);
    var now = Candidates.figures(before);
    var then = Candidates.figures(after);
    var made = after.with(decided, proposal.rewrites());
    if (mode == Mode.ON || namesWhatIsNew(before, after, context)) {
      return made.with(DROPPED, ImmutableList.of());
    }
    var kept = before.with(decided, undone(proposal.rewrites(), now, then));
    return isBetter(now, then) ? without(kept, made) : without(made, kept);
  }

  /** The state that is taken, with one more that is not. */
  private static GraphState without(GraphState dropped, GraphState taken) {
    var complete = dropped.with(DROPPED, ImmutableList.of());
    for (var decisions : DECISIONS) {
      if (complete.facts().find(decisions).isEmpty()) {
        complete = complete.with(decisions, ImmutableList.of());
      }
    }
    return taken.with(
        DROPPED, ImmutableList.<GraphState>builder().addAll(dropped(taken)).add(complete).build());
  }

  /** By identity: comparing all that large graphs hold takes longer than planning them. */
  static boolean isUnchanged(ImmutableList<Graph> given, ImmutableList<Graph> proposed) {
    return IntStream.range(0, given.size()).allMatch(c -> given.get(c) == proposed.get(c));
  }

  /** Whether the caller forces the variant of a collective that only the proposal has. */
  private static boolean namesWhatIsNew(GraphState before, GraphState after, PassContext context) {
    var unknown = new ForcedVariants(before, context).unknown();
    return !new ForcedVariants(after, context).unknown().containsAll(unknown);
  }

  private static boolean isBetter(Figures before, Figures after) {
    return after.micros() < before.micros()
        && after.peakBytes() <= BucketLives.limit(before.peakBytes())
        && Frontier.pays(after, before, Candidates.MIN_GAIN);
  }

  private static ImmutableList<Rewrite> undone(
      ImmutableList<Rewrite> rewrites, Figures before, Figures after) {
    var detail =
        "with all predicted rewrites, the plan takes %s and %s, not %s and %s"
            .formatted(
                Units.micros(after.micros()),
                Units.bytes(after.peakBytes()),
                Units.micros(before.micros()),
                Units.bytes(before.peakBytes()));
    return rewrites.stream()
        .map(rewrite -> rewrite.made() ? rewrite.undone(Reason.PLAN, detail) : rewrite)
        .collect(ImmutableList.toImmutableList());
  }
}
