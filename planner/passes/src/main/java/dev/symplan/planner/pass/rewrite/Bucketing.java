package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.CollectiveCall;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
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
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Decides which collectives become one: several of a kind, group, reduction and element type that
 * may all run where one of them does. One collective with several tensors meets its peers once, and
 * each tensor stays where it is, so that nothing is packed.
 *
 * <p>What is decided is decided from the graphs of all ranks, by the collectives' common indices.
 * Each collective is compared with the bucket of its like that is open before it, so the work grows
 * with the number of collectives and not with its square.
 */
final class Bucketing {
  /**
   * The most bytes of one collective, the larger of operands and results. XLA's combiners stop at
   * 30 MiB; beyond twice that, a meeting saved is less than a twentieth of the transfer.
   */
  static final long MAX_BYTES = 64L << 20;

  /** Kernels take the addresses of all tensors as parameters. */
  static final int MAX_TENSORS = 64;

  /** Decided: the buckets of more than one, by their first members, and why there are not more. */
  record Decided(ImmutableList<Bucket> buckets, ImmutableList<Rewrite> rewrites) {}

  /** The facts that collectives must share; groups may be called differently on each rank. */
  private record BucketKey(
      Kind kind,
      ImmutableList<String> groups,
      Optional<ReduceOp> reduceOp,
      Optional<DType> dtype,
      Optional<DType> made,
      boolean inPlace) {}

  /** Why a collective does not join. */
  private record Refusal(Reason reason, String detail, double before, double after) {
    Refusal(Reason reason, String detail) {
      this(reason, detail, 0, 0);
    }
  }

  private final GraphState state;
  private final ImmutableList<Analyses> graphs;
  private final PassContext context;
  private final CompileOptions options;
  private final Mode mode;
  private final CostModel costs;
  private final Select select;
  private final BucketLives lives;
  private final List<OpenBucket> all = new ArrayList<>();
  private final Map<Integer, Rewrite> refused = new HashMap<>();

  private Bucketing(GraphState state, PassContext context) {
    this.state = state;
    this.graphs = state.analyses();
    this.context = context;
    this.options = context.options();
    this.mode = options.rewrites().bucket();
    this.costs = context.costs();
    this.select = new Select(state, context);
    this.lives = new BucketLives(graphs);
  }

  static Decided decide(GraphState state, PassContext context) {
    if (state.analyses().getFirst().collectives().size() < 2) {
      return new Decided(ImmutableList.of(), ImmutableList.of());
    }
    return new Bucketing(state, context).decide();
  }

  private Decided decide() {
    var open = new HashMap<BucketKey, OpenBucket>();
    var lastOfKind = new EnumMap<Kind, Integer>(Kind.class);
    for (int k = 0; k < graphs.getFirst().collectives().size(); k++) {
      if (!hasListForm(k)) {
        continue;
      }
      var key = bucketKey(k);
      @Nullable OpenBucket bucket = open.get(key);
      @Nullable Integer before = lastOfKind.put(key.kind(), k);
      if (bucket != null && whyFixed(k).isPresent()) {
        var why = whyFixed(k).get();
        refuse(bucket.members.getLast(), k, new Refusal(why, Rewriter.detail(why)));
        continue;
      }
      var own = start(k);
      if (bucket == null || whyFixed(bucket.members.getFirst()).isPresent()) {
        if (bucket == null && before != null) {
          refuse(before, k, new Refusal(Reason.OTHER_KIND, difference(before, k)));
        }
        open.put(key, own);
        all.add(own);
        continue;
      }
      var refusal = join(bucket, own, k);
      if (refusal.isPresent()) {
        refuse(bucket.members.getLast(), k, refusal.get());
        open.put(key, own);
        all.add(own);
      }
    }
    return finish();
  }

  private Decided finish() {
    var buckets = ImmutableList.<Bucket>builder();
    var rewrites = new HashMap<>(refused);
    var merged = new HashMap<Integer, Rewrite>();
    for (var bucket : all) {
      if (bucket.members.size() > 1) {
        buckets.add(new Bucket(ImmutableList.copyOf(bucket.members), bucket.anchor));
        merged.put(
            bucket.members.getFirst(),
            new Rewrite(
                Action.MERGED,
                bucket.members.stream().map(this::part).collect(ImmutableList.toImmutableList()),
                1,
                bucket.together < bucket.apart ? Reason.FASTER : Reason.WANTED,
                "at the position of " + collective(bucket.anchor).name(),
                bucket.apart,
                bucket.together));
      }
    }
    var ordered = ImmutableList.<Rewrite>builder();
    for (int k = 0; k < graphs.getFirst().collectives().size(); k++) {
      Optional.ofNullable(merged.get(k)).ifPresent(ordered::add);
      Optional.ofNullable(rewrites.get(k)).ifPresent(ordered::add);
    }
    return new Decided(buckets.build(), ordered.build());
  }

  private void refuse(int earlier, int k, Refusal refusal) {
    refused.put(
        k,
        new Rewrite(
            Action.APART,
            ImmutableList.of(part(earlier), part(k)),
            2,
            refusal.reason(),
            refusal.detail(),
            refusal.before(),
            refusal.after()));
  }

  private Rewrite.Member part(int k) {
    return Rewriter.member(graphs, k);
  }

  private Collective collective(int k) {
    return graphs.getFirst().collectives().get(k);
  }

  private long bytes(int k) {
    return graphs.stream().mapToLong(g -> g.collectives().get(k).bytes()).max().orElse(0);
  }

  /** The bytes that a collective moves into or out of a rank, whichever is more. */
  private long moved(int k) {
    return Math.max(
        bytes(k),
        graphs.stream()
            .mapToLong(
                g ->
                    g.collectives().get(k).results().stream()
                        .mapToLong(v -> v.tensor().bytes())
                        .sum())
            .max()
            .orElse(0));
  }

  private boolean hasListForm(int k) {
    var collective = collective(k);
    var name = collective.op().def().name();
    return (name.namespace().equals("_c10d_functional")
            || name.toString().equals(Widening.SCATTER_OF_SEVERAL))
        && context.groupSize(collective.group()) > 1
        && switch (collective.kind()) {
          case ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER -> true;
          case ALL_TO_ALL, BROADCAST, COLLECTIVE_PERMUTE, CUSTOM -> false;
        };
  }

  private Optional<Reason> whyFixed(int k) {
    return Rewriter.whyFixed(graphs, k, context);
  }

  private BucketKey bucketKey(int k) {
    var collective = collective(k);
    boolean reduces = collective.kind() != Kind.ALL_GATHER;
    return new BucketKey(
        collective.kind(),
        graphs.stream()
            .map(g -> g.collectives().get(k).group())
            .collect(ImmutableList.toImmutableList()),
        collective.reduceOp(),
        reduces ? Optional.of(collective.dtype()) : Optional.empty(),
        collective.op().collective().flatMap(CollectiveCall::dtype),
        collective.kind() == Kind.ALL_REDUCE && mayBeInPlace(k));
  }

  /**
   * In place is one decision for all tensors of a collective: one that cannot would hold up all.
   */
  private boolean mayBeInPlace(int k) {
    for (int g = 0; g < graphs.size(); g++) {
      var graph = graphs.get(g);
      for (var operand : graph.collectives().get(k).operands()) {
        if (graph.aliases().of(operand).isInput()
            || !graph.aliases().isWhole(operand)
            || !diesIn(g, operand, k)) {
          return false;
        }
      }
    }
    return true;
  }

  private boolean diesIn(int g, Value operand, int k) {
    return lives.lastUse(g, operand) == graphs.get(g).overlap().window(k).given();
  }

  private String difference(int before, int k) {
    var a = bucketKey(before);
    var b = bucketKey(k);
    if (!a.groups().equals(b.groups())) {
      return "group '%s', not '%s'".formatted(collective(k).group(), collective(before).group());
    }
    if (!a.reduceOp().equals(b.reduceOp())) {
      return "it reduces with %s, not %s"
          .formatted(b.reduceOp().orElseThrow(), a.reduceOp().orElseThrow());
    }
    if (!a.dtype().equals(b.dtype())) {
      return "%s, not %s"
          .formatted(collective(k).dtype().shortName(), collective(before).dtype().shortName());
    }
    if (!a.made().equals(b.made())) {
      return "its result is %s, not %s"
          .formatted(
              collective(k).results().getFirst().tensor().dtype().shortName(),
              collective(before).results().getFirst().tensor().dtype().shortName());
    }
    return b.inPlace() ? "it can be in place" : "it cannot be in place";
  }

  private OpenBucket start(int k) {
    var price = CollectiveCost.of(state, k, bytes(k), context);
    var bucket =
        new OpenBucket(
            k,
            bucketKey(k).inPlace(),
            price,
            moved(k),
            price.micros(
                graphs.stream().mapToDouble(g -> g.overlap().hideableMicros(k)).min().orElse(0),
                costs,
                select),
            graphs.size());
    for (int g = 0; g < graphs.size(); g++) {
      var graph = graphs.get(g);
      var window = graph.overlap().window(k);
      bucket.ready[g] = window.earliest();
      bucket.needed[g] = window.needed();
      for (var operand : graph.collectives().get(k).operands()) {
        boolean freed = !graph.aliases().of(operand).isInput() && diesIn(g, operand, k);
        bucket.held[g] += freed ? operand.tensor().bytes() : 0;
      }
      for (var result : graph.collectives().get(k).results()) {
        bucket.made[g] += result.tensor().bytes();
      }
    }
    return bucket;
  }

  /** Puts a collective into a bucket, or says why not. */
  private Optional<Refusal> join(OpenBucket bucket, OpenBucket own, int k) {
    if (bucket.moved + own.moved > MAX_BYTES
        || bucket.price.tensors() + own.price.tensors() > MAX_TENSORS) {
      return refusal(
          Reason.SIZE,
          "one collective moves at most %s MiB of %s tensors"
              .formatted(MAX_BYTES >> 20, MAX_TENSORS));
    }
    boolean sinks = true;
    boolean fits = true;
    for (int g = 0; g < graphs.size(); g++) {
      sinks &= given(g, k) < bucket.needed[g];
      fits &= own.ready[g] <= given(g, bucket.anchor);
    }
    if (!sinks && !fits) {
      return Optional.of(apart(bucket, k));
    }
    double room = Double.POSITIVE_INFINITY;
    for (int g = 0; g < graphs.size(); g++) {
      int from = Math.max(bucket.ready[g], own.ready[g]);
      int to = Math.min(bucket.needed[g], own.needed[g]);
      room = Math.min(room, graphs.get(g).overlap().workBetween(from, Math.max(from, to)));
    }
    var price = bucket.price.with(own.price);
    double together = price.micros(room, costs, select);
    if (mode == Mode.AUTO && !(together < bucket.together + own.together)) {
      return Optional.of(
          new Refusal(
              Reason.NO_GAIN,
              String.format(
                  Locale.ROOT,
                  "%.1f µs merged, %.1f separate",
                  together,
                  bucket.together + own.together),
              bucket.together + own.together,
              together));
    }
    if (Double.isInfinite(together)) {
      return refusal(Reason.NO_GAIN, "no variant supports them all");
    }
    long grows = mode == Mode.AUTO ? lives.move(bucket, own, sinks) : 0;
    if (grows > 0 && sinks && fits) {
      sinks = false;
      grows = lives.move(bucket, own, false);
    }
    if (grows > 0) {
      return refusal(
          Reason.MEMORY,
          "%s more bytes would be live at once; now %s".formatted(grows, lives.initialPeak()));
    }
    bucket.take(own, sinks, price, together);
    return Optional.empty();
  }

  private static Optional<Refusal> refusal(Reason reason, String detail) {
    return Optional.of(new Refusal(reason, detail));
  }

  private int given(int g, int k) {
    return graphs.get(g).overlap().window(k).given();
  }

  /** Why a collective and a bucket have no position in common. */
  private Refusal apart(OpenBucket bucket, int k) {
    for (int g = 0; g < graphs.size(); g++) {
      var graph = graphs.get(g);
      if (given(g, k) < bucket.needed[g]) {
        continue;
      }
      var at = graph.overlap().units().get(bucket.needed[g]).get(0);
      var reader = graph.graph().ops().get(at);
      if (at == graph.collectives().get(k).index()) {
        return new Refusal(Reason.DEPENDENT, "it uses the other's result");
      }
      return new Refusal(
          Reason.NEEDED_EARLIER,
          "%s (%s) comes between".formatted(reader.def().name(), reader.span().shortForm()));
    }
    return new Refusal(Reason.NEEDED_EARLIER, "on other ranks, one is needed before the other");
  }
}
