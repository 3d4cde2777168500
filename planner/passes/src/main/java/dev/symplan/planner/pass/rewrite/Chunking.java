package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.select.CollectiveCost;
import dev.symplan.planner.pass.select.Select;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.planner.plan.Rewrite.Reason;
import java.util.Locale;
import java.util.Optional;

/**
 * Decides which matrix products are split by rows, together with the all_reduce of their result:
 * while one piece is reduced, the next is computed. Rows of a product do not depend on each other,
 * and neither do those of an all_reduce, so that the numbers stay.
 *
 * <p>A reduce_scatter is left alone: its pieces would need rows from all over the product.
 */
final class Chunking {
  private static final int[] PIECES = {2, 4, 8};

  /** In auto, no piece has fewer rows: a tile of the GPU's matrix products. */
  private static final int TILE_ROWS = 128;

  /** In auto, what splitting must gain at least: measured times differ as much from run to run. */
  private static final double MIN_GAIN = 0.03;

  /**
   * How long a piece delays the product beside it, relative to its own time alone. Both use the
   * multiprocessors and the memory: on four H200s, 8 pieces of 16 MiB made a product of 8192³ take
   * 1.16 times their time longer (docs/performance.md).
   */
  private static final double DELAY = 1.16;

  /**
   * A collective that is split.
   *
   * @param products for each graph, the product that is split with it
   */
  record Chunk(int collective, int pieces, ImmutableList<ChunkableProduct> products) {}

  /** What is decided of one collective. */
  private record Choice(Optional<Chunk> chunk, Rewrite rewrite) {}

  /** Decided: what is split, in order, and why not more. */
  record Decided(ImmutableList<Chunk> chunks, ImmutableList<Rewrite> rewrites) {}

  private final GraphState state;
  private final ImmutableList<Analyses> graphs;
  private final PassContext context;
  private final CompileOptions options;
  private final Mode mode;
  private final CostModel costs;
  private final Select select;
  private final ImmutableList<ChunkableProducts> products;

  private Chunking(GraphState state, PassContext context) {
    this.state = state;
    this.graphs = state.analyses();
    this.context = context;
    this.options = context.options();
    this.mode = options.rewrites().chunk();
    this.costs = context.costs();
    this.select = new Select(state, context);
    this.products =
        graphs.stream().map(ChunkableProducts::new).collect(ImmutableList.toImmutableList());
  }

  static Decided decide(GraphState state, PassContext context) {
    // Without a second stream there is nothing to win.
    if (!context.options().overlap() || state.analyses().getFirst().collectives().isEmpty()) {
      return new Decided(ImmutableList.of(), ImmutableList.of());
    }
    return new Chunking(state, context).decide();
  }

  private Decided decide() {
    var choices =
        Parallel.map(graphs.getFirst().collectives().size(), this::consider).stream()
            .flatMap(Optional::stream)
            .toList();
    return new Decided(
        choices.stream().flatMap(choice -> choice.chunk().stream()).collect(toImmutableList()),
        choices.stream().map(Choice::rewrite).collect(toImmutableList()));
  }

  /** {@return whether a collective is split, and why not; empty if it is none that could be} */
  private Optional<Choice> consider(int k) {
    var collective = graphs.getFirst().collectives().get(k);
    return collective.kind() == Kind.ALL_REDUCE
            && collective.op().def().name().toString().equals("_c10d_functional::all_reduce")
            && context.groupSize(collective.group()) > 1
        ? consider(k, collective)
        : Optional.empty();
  }

  private Optional<Choice> consider(int k, Collective collective) {
    var found = ImmutableList.<ChunkableProduct>builder();
    for (int g = 0; g < graphs.size(); g++) {
      var product = products.get(g).before(k);
      if (product.isEmpty()) {
        return Optional.empty();
      }
      found.add(product.get());
    }
    var all = found.build();
    var fixed = Rewriter.whyFixed(graphs, k, context);
    if (fixed.isPresent()) {
      return whole(k, fixed.get(), Rewriter.detail(fixed.get()), 0, 0);
    }
    var price = CollectiveCost.of(state, k, collective.bytes(), context);
    double whole = price.micros(hideableMicros(k), costs, select) + longest(all, 1);
    int best = 0;
    double bestMicros = Double.POSITIVE_INFINITY;
    for (int pieces : PIECES) {
      if (all.stream().allMatch(product -> divides(product.rows(), pieces))) {
        double micros = split(k, price.part(pieces), all, pieces);
        if (micros < bestMicros) {
          best = pieces;
          bestMicros = micros;
        }
      }
    }
    if (best == 0) {
      return whole(
          k,
          Reason.SIZE,
          "its %s rows do not divide into large pieces".formatted(fewestRows(all)),
          0,
          0);
    }
    if (mode == Mode.AUTO && bestMicros >= whole * (1 - MIN_GAIN)) {
      var detail =
          String.format(Locale.ROOT, "%.1f µs in %s pieces, %.1f whole", bestMicros, best, whole);
      return whole(k, Reason.NO_GAIN, detail, whole, bestMicros);
    }
    var reason = bestMicros < whole ? Reason.FASTER : Reason.WANTED;
    var detail = "with " + all.getFirst().op().def().name();
    return Optional.of(
        new Choice(
            Optional.of(new Chunk(k, best, all)),
            rewrite(k, Action.CHUNKED, best, reason, detail, whole, bestMicros)));
  }

  private boolean divides(long rows, int pieces) {
    return rows % pieces == 0 && rows / pieces >= (mode == Mode.AUTO ? TILE_ROWS : 1);
  }

  /** Ranks may see what they reduce in another shape than that of their product. */
  private static long fewestRows(ImmutableList<ChunkableProduct> all) {
    return all.stream().mapToLong(ChunkableProduct::rows).min().orElseThrow();
  }

  /** Each piece but the last runs beside the product of the next. */
  private double split(
      int k, CollectiveCost piece, ImmutableList<ChunkableProduct> all, int pieces) {
    double product = longest(all, pieces);
    double alone = piece.micros(0, costs, select);
    double beside = Math.max(piece.micros(product, costs, select), DELAY * alone);
    double last = piece.micros(hideableMicros(k), costs, select);
    long bytes = piece.bytes() * pieces;
    // Where ranks run graphs of their own, symmetric pieces are not written where they are joined.
    double joining = graphs.size() == 1 ? 0 : costs.copyMicros(bytes);
    return pieces * product + (pieces - 1) * beside + last + joining;
  }

  private double longest(ImmutableList<ChunkableProduct> all, int pieces) {
    return all.stream().mapToDouble(p -> costs.computeMicros(p.piece(pieces))).max().orElse(0);
  }

  private double hideableMicros(int k) {
    return graphs.stream().mapToDouble(g -> g.overlap().hideableMicros(k)).min().orElse(0);
  }

  private Optional<Choice> whole(int k, Reason reason, String detail, double before, double after) {
    return Optional.of(
        new Choice(Optional.empty(), rewrite(k, Action.WHOLE, 1, reason, detail, before, after)));
  }

  private Rewrite rewrite(
      int k, Action action, int pieces, Reason reason, String detail, double before, double after) {
    var members = ImmutableList.of(Rewriter.member(graphs, k));
    return new Rewrite(action, members, pieces, reason, detail, before, after);
  }
}
