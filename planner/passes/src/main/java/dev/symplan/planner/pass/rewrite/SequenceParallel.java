package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Multimaps;
import com.google.common.collect.Sets;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.rewrite.RowSharing.Made;
import dev.symplan.planner.pass.select.CollectiveCost;
import dev.symplan.planner.pass.select.SelectVariants;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.planner.plan.Rewrite.Reason;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Makes all_reduces with ops by rows behind them, such as the residual and the norm of a
 * transformer, sequence parallel: a reduce_scatter, the ops on each rank's share of the rows, and
 * an all_gather of what other ops read. Each rank then computes and keeps only its share.
 *
 * <p>Each rank reads its own memory, so all ranks must run the same graph, and the other operands
 * of those ops must be the same on all of them ({@link ReplicatedValues}).
 *
 * <p>Source: Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models,
 * 2022, section 4.2.2.
 */
public final class SequenceParallel implements Rewriter {

  /** In auto, what a chain must gain at least: its times are estimates. */
  private static final double MIN_GAIN = 0.05;

  /**
   * How much longer an all_gather takes than its curve says, right after the ops on shares: on two
   * H100s, 33 instead of 28 µs for 8 MiB.
   */
  private static final double BEHIND = 1.17;

  /**
   * In auto, no smaller all_reduce is considered: another collective takes longer than ops on so
   * few bytes.
   */
  private static final long MIN_BYTES = 1 << 20;

  /** The reductions that every kind of collective has. */
  private static final ImmutableSet<ReduceOp> SCATTERED =
      Sets.immutableEnumSet(ReduceOp.SUM, ReduceOp.AVG, ReduceOp.MIN, ReduceOp.MAX);

  @Override
  public Mode mode(RewriteOptions options) {
    return options.sequenceParallel();
  }

  @Override
  public Proposal propose(GraphState state, PassContext context) {
    return new Search(state, context).propose();
  }

  private static final class Search {
    private final GraphState state;
    private final PassContext context;
    private final ImmutableList<Analyses> graphs;
    private final Mode mode;
    private final List<Rewrite> rewrites = new ArrayList<>();

    Search(GraphState state, PassContext context) {
      this.state = state;
      this.context = context;
      this.graphs = state.analyses();
      this.mode = context.options().rewrites().sequenceParallel();
    }

    Proposal propose() {
      if (mode == Mode.AUTO && context.options().replicated().isEmpty()) {
        return unchanged();
      }
      var candidates =
          IntStream.range(0, graphs.getFirst().collectives().size())
              .filter(this::isCandidate)
              .boxed()
              .collect(ImmutableSet.toImmutableSet());
      if (candidates.isEmpty()) {
        return unchanged();
      }
      var own = graphs.getFirst();
      var refused = new TreeMap<Integer, RowShares.Refusal>();
      var rows = RowShares.of(own, context, candidates, refused);
      refused.forEach((k, why) -> note(k, why.reason(), why.detail()));
      if (rows.reduces().isEmpty()) {
        return unchanged();
      }
      var draft = RowSharing.run(own, rows, context);
      var taken = taken(rows, draft);
      if (taken.isEmpty()) {
        return unchanged();
      }
      var made =
          taken.size() == rows.reduces().size()
              ? draft
              : RowSharing.run(own, RowShares.of(own, context, taken, new TreeMap<>()), context);
      return new Proposal(ImmutableList.of(made.graph()), ImmutableList.copyOf(rewrites));
    }

    private Proposal unchanged() {
      return new Proposal(state.graphs(), ImmutableList.copyOf(rewrites));
    }

    private boolean isCandidate(int k) {
      var reduce = graphs.getFirst().collectives().get(k);
      if (!isPlain(reduce) || (mode == Mode.AUTO && reduce.bytes() < MIN_BYTES)) {
        return false;
      }
      if (graphs.size() > 1) {
        return note(k, Reason.MAY_DIFFER, "the ranks run different graphs");
      }
      if (mode == Mode.AUTO && namesKinds()) {
        return note(k, Reason.FORCED_VARIANT, "the variant of its parts is forced");
      }
      var fixed = Rewriter.whyFixed(graphs, k, context);
      if (fixed.isPresent()) {
        return note(k, fixed.get(), Rewriter.detail(fixed.get()));
      }
      var type = reduce.operands().getFirst().tensor();
      int ranks = context.groupSize(reduce.group());
      return ShareTypes.divides(type, ranks)
          || note(
              k,
              Reason.UNEVEN,
              "%s does not divide into rows for %s".formatted(type, Units.count(ranks, "rank")));
    }

    /** A variant that the caller wants may not be able to run what it was not meant for. */
    private boolean namesKinds() {
      return Stream.of(Kind.REDUCE_SCATTER, Kind.ALL_GATHER)
          .anyMatch(kind -> context.options().variants().containsKey(kind.text()));
    }

    private boolean isPlain(Collective collective) {
      return collective.kind() == Kind.ALL_REDUCE
          && collective.reduceOp().filter(SCATTERED::contains).isPresent()
          && collective.op().def().name().toString().equals("_c10d_functional::all_reduce")
          && context.groupSize(collective.group()) > 1;
    }

    /** The all_reduces of those chains that gain, or of all if the caller wants that. */
    private Set<Integer> taken(RowShares rows, Made draft) {
      var selected =
          new SelectVariants().run(state.withGraphs(ImmutableList.of(draft.graph())), context);
      var before = new double[graphs.getFirst().collectives().size()];
      var after = new double[before.length];
      var pieces = new int[before.length];
      var named = new HashSet<Integer>();
      var sources = draft.sources();
      for (int i = 0; i < sources.length(); i++) {
        int k = sources.get(i);
        boolean gathers = pieces[k] > 0;
        after[k] += CollectiveCost.chosenMicros(selected, i) * (gathers ? BEHIND : 1);
        pieces[k]++;
        if (isNamed(selected, i)) {
          named.add(k);
        }
      }
      var costs = RowShareCosts.of(graphs.getFirst(), rows, context);
      for (int k : rows.reduces()) {
        int ranks = context.groupSize(graphs.getFirst().collectives().get(k).group());
        double whole = costs.micros().get(k);
        long cut = costs.cutBytes().get(k);
        before[k] = CollectiveCost.chosenMicros(state, k) + whole;
        after[k] += whole / ranks + (cut == 0 ? 0 : context.costs().copyMicros(cut));
      }
      var taken = new LinkedHashSet<Integer>();
      for (var chain : chains(rows)) {
        double was = chain.stream().mapToDouble(k -> before[k]).sum();
        double is = chain.stream().mapToDouble(k -> after[k]).sum();
        boolean pays = is < was * (1 - MIN_GAIN);
        if (pays || mode == Mode.ON || chain.stream().anyMatch(named::contains)) {
          taken.addAll(chain);
        }
        for (int k : chain) {
          note(k, taken.contains(k), is < was, pieces[k], before[k], after[k]);
        }
      }
      return taken;
    }

    /** The all_reduces that become sequence parallel together, or not. */
    private static Collection<Collection<Integer>> chains(RowShares rows) {
      var chainOf = rows.chainOf();
      return Multimaps.index(rows.reduces(), k -> Objects.requireNonNull(chainOf.get(k)))
          .asMap()
          .values();
    }

    /** The caller may name what only the draft has. */
    private boolean isNamed(GraphState draft, int position) {
      return draft.analyses().stream()
          .map(graph -> graph.collectives().get(position).name())
          .anyMatch(context.options().variants()::containsKey);
    }

    private boolean note(int k, Reason reason, String detail) {
      add(k, Action.REPLICATED, 1, reason, detail, 0, 0);
      return false;
    }

    private void note(
        int k, boolean made, boolean faster, int pieces, double before, double after) {
      if (made) {
        var collective = graphs.getFirst().collectives().get(k);
        var type = collective.operands().getFirst().tensor();
        long rows = type.size(ShareTypes.dim(type.sizes())) / context.groupSize(collective.group());
        var detail = Units.count(rows, "row") + " on each rank";
        var reason = faster ? Reason.FASTER : Reason.WANTED;
        add(k, Action.SEQUENCE_PARALLEL, pieces, reason, detail, before, after);
      } else {
        var detail =
            String.format(
                Locale.ROOT, "%.1f µs on shares of the rows, %.1f on all rows", after, before);
        add(k, Action.REPLICATED, 1, Reason.NO_GAIN, detail, before, after);
      }
    }

    private void add(
        int k,
        Action action,
        int pieces,
        Reason reason,
        String detail,
        double before,
        double after) {
      var members = ImmutableList.of(Rewriter.member(graphs, k));
      rewrites.add(new Rewrite(action, members, pieces, reason, detail, before, after));
    }
  }
}
