package dev.symplan.planner.pass.order;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ListMultimap;
import com.google.common.collect.MultimapBuilder;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * Lowers the memory at the peak: what is live there, and next read only later, is given up and
 * computed again before that ({@link Recomputation}), or copied to the host's memory and back
 * ({@link Offloading}), or lives there altogether ({@link HostHomes}), whichever adds less time.
 *
 * <p>Each round looks at the highest point. The ways to free memory there are a knapsack: {@link
 * Knapsack} picks those that free enough in the least time. At the end, the copies get compute
 * beside them where there is memory to spare ({@link CopyWindows}). The search then begins anew
 * with what they really take, or without what takes longest; the fastest result counts.
 */
public final class PeakReduction {
  /** Tensors that are looked at in one round, the largest ones. */
  private static final int MAX_STORAGES = 512;

  /** The number that is tried one at a time, if a sufficient set does not lower the peak. */
  private static final int MAX_ALONE = 8;

  private static final int MAX_ROUNDS = 500;

  /** The number of searches that know what copies took in those before. */
  private static final int MAX_TRIES = 4;

  /** The number of aims: the limit, and as much less as the largest tensor takes, or twice that. */
  private static final int MAX_AIMS = 3;

  /**
   * A graph in which tensors are given up.
   *
   * @param peak the most that is live at once, predicted as for an order of ops
   * @param made what was given up
   */
  public record Lowered(Graph graph, long peak, ImmutableList<Made> made) {
    /** {@return the predicted time that all of it adds, in µs} */
    public double micros() {
      return made.stream().mapToDouble(Made::micros).sum();
    }
  }

  /** A tensor that was given up. */
  public sealed interface Made {
    /** The tensor as it was defined first. */
    Value value();

    /** The bytes that are free from its last use before the peak until it is back. */
    long bytes();

    /** The predicted time that it adds, in µs. */
    double micros();
  }

  /**
   * A tensor that is computed again.
   *
   * @param ops the number of ops that run again
   * @param gathers the number of gathers among them
   * @param reader the op before which it is back
   */
  public record Recomputed(
      Value value, long bytes, int ops, int gathers, String reader, double micros)
      implements Made {}

  /**
   * A tensor that waits in the host's memory.
   *
   * @param input whether it is there when the program begins, and when it ends
   * @param readers the ops before which it is on the device again
   * @param linkMicros the predicted time of all copies on the link, in µs
   * @param micros as much of it as compute does not hide, and what the waits themselves take
   */
  public record Offloaded(
      Value value,
      long bytes,
      boolean input,
      ImmutableList<String> readers,
      double linkMicros,
      double micros)
      implements Made {

    /** {@return the same tensor, which waits once more} */
    Offloaded and(Offloaded again) {
      return new Offloaded(
          value,
          bytes,
          input,
          ImmutableList.<String>builder().addAll(readers).addAll(again.readers()).build(),
          linkMicros + again.linkMicros(),
          micros + again.micros());
    }
  }

  /** Prices gathers that run again. */
  public interface Gathers {
    /** For ranks that do not all run the same ops, and so cannot decide alike. */
    Gathers NEVER = (_, _) -> OptionalDouble.empty();

    /**
     * {@return the predicted time in µs of a gather of one tensor; empty for an op that is no
     * gather or must not run twice}
     *
     * @param k which of the op's tensors
     */
    OptionalDouble micros(Op op, int k);
  }

  /** A way to give up a tensor, or any one. */
  private record Way(Optional<Value> value, Class<? extends Made> kind) {
    static Way of(Made made) {
      return new Way(Optional.of(made.value()), made.getClass());
    }
  }

  private final PeakView view;
  private final CostModel costs;
  private final Gathers gathers;

  /** The least that ways are taken to cost, in µs. */
  private final ImmutableMap<Way, Double> known;

  private final Recomputation recomputation;
  private final Offloading offloading;
  private final HostHomes homes;

  private PeakReduction(
      Analyses own, CostModel costs, Gathers gathers, ImmutableMap<Way, Double> known) {
    this.view = new PeakView(own);
    this.costs = costs;
    this.gathers = gathers;
    this.known = known;
    this.recomputation = new Recomputation(view, costs, gathers);
    var times = new CopyTimes(view, costs);
    boolean alike = gathers != Gathers.NEVER;
    this.offloading = new Offloading(view, times, alike);
    this.homes = new HostHomes(view, times, alike);
  }

  /** A graph of whose copies nothing is known yet. */
  PeakReduction(Analyses own, CostModel costs, Gathers gathers) {
    this(own, costs, gathers, ImmutableMap.of());
  }

  /** {@return the predicted peak of live bytes} */
  public static long peak(Analyses own) {
    return new PeakView(own).profile.peak();
  }

  /**
   * {@return the graph with a peak of at most so many bytes by prediction, or as low as it gets}
   *
   * @param moves whether tensors may move to the host's memory
   * @param before what the graph has given up already
   */
  public static Lowered lower(
      Analyses own, CostModel costs, Gathers gathers, boolean moves, List<Made> before, long most) {
    var first = moves ? ImmutableMap.<Way, Double>of() : refused(Offloaded.class);
    var tight = own.of(CopyWindows.tight(own.graph()));
    var best = new PeakReduction(tight, costs, gathers, first).lower(before, most, most);
    if (best.peak() > most && moves) {
      // The needs of one kind may stand in the way of the other.
      for (var kind : List.of(Recomputed.class, Offloaded.class)) {
        var one = new PeakReduction(tight, costs, gathers, refused(kind)).lower(before, most, most);
        best = one.peak() < best.peak() ? one : best;
      }
    }
    long largest = best.made().stream().mapToLong(Made::bytes).max().orElse(0);
    for (int k = 0; k < (moves ? MAX_AIMS : 1) && best.peak() <= most; k++) {
      var found = lower(tight, costs, gathers, first, before, most - k * largest, most);
      best = found.peak() <= most && found.micros() < best.micros() ? found : best;
    }
    return best;
  }

  private static ImmutableMap<Way, Double> refused(Class<? extends Made> kind) {
    return ImmutableMap.of(new Way(Optional.empty(), kind), Double.POSITIVE_INFINITY);
  }

  /**
   * {@return the best of several searches}
   *
   * @param first what is known of ways before any search
   * @param aim what these try to reach: if it is below {@code most}, copies find memory to hide in
   */
  private static Lowered lower(
      Analyses tight,
      CostModel costs,
      Gathers gathers,
      ImmutableMap<Way, Double> first,
      List<Made> before,
      long aim,
      long most) {
    Map<Way, Double> known = new HashMap<>(first);
    var best = new PeakReduction(tight, costs, gathers, first).lower(before, aim, most);
    var last = best;
    for (int i = 0; i < MAX_TRIES && last.peak() <= most; i++) {
      var made = last.made().subList(before.size(), last.made().size());
      if (!learn(made, known)) {
        // The one that takes longest may have a faster way, or others may do.
        made.stream()
            .filter(one -> known.getOrDefault(Way.of(one), 0.0) < Double.POSITIVE_INFINITY)
            .max(Comparator.comparingDouble(Made::micros))
            .ifPresent(one -> known.put(Way.of(one), Double.POSITIVE_INFINITY));
      }
      last =
          new PeakReduction(tight, costs, gathers, ImmutableMap.copyOf(known))
              .lower(before, aim, most);
      best = last.peak() <= most && last.micros() < best.micros() ? last : best;
    }
    return best;
  }

  /** {@return whether any copy took longer than was known} */
  private static boolean learn(List<Made> made, Map<Way, Double> known) {
    boolean longer = false;
    for (var one : made) {
      if (one instanceof Offloaded && one.micros() > known.getOrDefault(Way.of(one), 0.0) + 1e-6) {
        known.put(Way.of(one), one.micros());
        longer = true;
      }
    }
    return longer;
  }

  private Lowered lower(List<Made> before, long aim, long most) {
    var now = this;
    var made = new ArrayList<>(before);
    for (int round = 0; round < MAX_ROUNDS && now.peak() > aim; round++) {
      var next = now.round(aim);
      if (next.isEmpty()) {
        break;
      }
      next.get().picked().forEach(saving -> add(made, saving.made()));
      now = next.get().after();
    }
    return now.widened(made, most);
  }

  /** Adds a decision; a tensor that waits in the host's memory several times is one. */
  static void add(List<Made> made, Made one) {
    for (int i = 0; i < made.size(); i++) {
      if (one instanceof Offloaded again
          && made.get(i) instanceof Offloaded before
          && before.value().id() == again.value().id()) {
        made.set(i, before.and(again));
        return;
      }
    }
    made.add(one);
  }

  /** {@return the graph whose copies have compute beside them, as far as there is memory} */
  Lowered widened(List<Made> made, long most) {
    var graph = CopyWindows.widen(view.own, costs, Math.max(most, peak()));
    var own = view.own.of(graph);
    var waits = CopyWindows.waits(own, costs);
    return new Lowered(
        graph,
        peak(own),
        made.stream().map(one -> timed(one, waits)).collect(ImmutableList.toImmutableList()));
  }

  private static Made timed(Made made, Map<Integer, Double> waits) {
    return switch (made) {
      case Recomputed again -> again;
      case Offloaded(
              var value,
              long bytes,
              boolean input,
              var readers,
              double link,
              double micros) ->
          new Offloaded(value, bytes, input, readers, link, waits.getOrDefault(value.id(), micros));
    };
  }

  long peak() {
    return view.profile.peak();
  }

  /** One round. */
  private record Round(PeakReduction after, ImmutableList<Saving> picked) {}

  private Optional<Round> round(long most) {
    var savings = savings();
    return Stream.concat(
            Knapsack.pick(savings, peak() - most).stream(),
            savings.stream().limit(MAX_ALONE).map(ImmutableList::of))
        .map(picked -> new Round(after(picked), picked))
        .filter(round -> round.after().view.profile.isBelow(view.profile))
        .findFirst();
  }

  /** {@return the ways to free memory at the peak, the cheapest bytes first} */
  ImmutableList<Saving> savings() {
    var made =
        view.aliases.storages().stream()
            .flatMap(storage -> view.waiting(storage).stream())
            .sorted(
                Comparator.comparingLong((PeakView.Waiting waiting) -> waiting.storage().bytes())
                    .reversed())
            .limit(MAX_STORAGES)
            .flatMap(
                waiting ->
                    Stream.concat(
                        recomputation.of(waiting).stream(), offloading.of(waiting).stream()));
    return Stream.concat(made, homes.all().stream())
        .map(saving -> saving.atLeast(leastMicros(saving.made())))
        .filter(saving -> saving.micros() < Double.POSITIVE_INFINITY)
        .sorted(Comparator.comparingDouble(Saving::price))
        .collect(ImmutableList.toImmutableList());
  }

  private double leastMicros(Made made) {
    return Math.max(
        known.getOrDefault(Way.of(made), 0.0),
        known.getOrDefault(new Way(Optional.empty(), made.getClass()), 0.0));
  }

  /** {@return the same of the graph that gives up some storages} */
  PeakReduction after(List<Saving> picked) {
    return new PeakReduction(view.own.of(without(picked)), costs, gathers, known);
  }

  private Graph without(List<Saving> picked) {
    ListMultimap<Integer, Consumer<GraphCopier>> insertions =
        MultimapBuilder.hashKeys().arrayListValues().build();
    var inHost = HostHomes.inputs(picked);
    var copier =
        new GraphCopier(
            view.own.graph(),
            input ->
                inHost.get(input.id()) ? input.tensor().withSpace(MemorySpace.HOST) : input.type());
    var dropped = new BitSet();
    for (var saving : picked) {
      switch (saving) {
        case Recomputation.Again again ->
            insertions.put(again.at(), now -> recomputation.insert(again, now));
        case Offloading.RoundTrip trip -> Offloading.insert(view, trip, insertions);
        case HostHomes.Visits visits -> {
          homes.insert(visits, copier, insertions);
          dropped.or(visits.dropped());
        }
      }
    }
    for (int i = 0; i <= view.ops.size(); i++) {
      insertions.get(i).forEach(insertion -> insertion.accept(copier));
      if (i < view.ops.size() && !dropped.get(i)) {
        copier.keep(view.ops.get(i));
      }
    }
    return copier.finish();
  }
}
