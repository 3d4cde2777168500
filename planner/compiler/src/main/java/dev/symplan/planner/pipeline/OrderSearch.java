package dev.symplan.planner.pipeline;

import static dev.symplan.planner.pipeline.Candidates.figures;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.options.Objective;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.order.CandidateOrders;
import dev.symplan.planner.pass.order.CandidateOrders.Freedom;
import dev.symplan.planner.pass.place.AllocateMemory;
import dev.symplan.planner.pass.place.ReserveWorkspaces;
import dev.symplan.planner.pass.rewrite.RepeatElementwise;
import dev.symplan.planner.pass.select.SelectVariants;
import dev.symplan.planner.plan.Frontier;
import dev.symplan.planner.plan.OrderDecision;
import dev.symplan.planner.plan.OrderDecision.Outcome;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Chooses between the given order and those that {@link CandidateOrders} proposes, how much runs
 * beside compute, and whether ops run again ({@link RepeatElementwise}), by what a plan made of
 * each really takes: the memory of both arenas, and the predicted time.
 *
 * <p>The same drafts are tried whatever the plan should be good at, so that the {@link Frontier}
 * says what the other plans would take.
 */
final class OrderSearch extends GraphPass {
  static final Fact<OrderDecision> ORDER = Fact.lasting("order");
  static final Fact<Frontier> FRONTIER = Fact.lasting("frontier");

  /** How many orders are tried, for each freedom: of graphs of many ops, fewer. */
  private static final int MAX_TRIED = 3;

  private static final int MAX_OPS_TRIED = 300_000;

  /** Of graphs with more ops, none run again: a second search would double the time for plans. */
  private static final int MAX_OPS_REPEATED = 50_000;

  /** By which part a run may get longer to have less in flight, where that saves memory. */
  private static final double MAX_LONGER = 0.01;

  private final ImmutableList<GraphPass> draft;
  private final AllocateMemory allocate = new AllocateMemory();

  /**
   * The result of the search for an order.
   *
   * @param balanced the best draft that the budget allows: the given one if there is no other
   * @param other the best draft in another order, if there is one
   */
  private record Orders(GraphState balanced, Optional<GraphState> other) {}

  OrderSearch(ImmutableList<GraphPass> draft) {
    super("reorder", facts(), facts(ORDER, FRONTIER));
    this.draft = draft;
  }

  /**
   * The result of a search.
   *
   * @param given the draft in the given order
   * @param balanced the draft that is neither the fastest nor the leanest at any price
   */
  private record Found(
      GraphState given, Orders orders, Candidates candidates, GraphState balanced) {

    boolean isBest(GraphState chosen, Objective objective) {
      return candidates.best(objective, balanced) == chosen;
    }
  }

  /** An order may bring ops together that would run again otherwise, so both are tried. */
  @Override
  public GraphState run(GraphState state, PassContext context) {
    var found = search(state, context);
    var repeated =
        ops(state) > MAX_OPS_REPEATED ? state : RepeatElementwise.repeated(state, context);
    if (RewriteSearch.isUnchanged(state.graphs(), repeated.graphs())) {
      return chosen(found, found, context);
    }
    var other = search(repeated, context);
    return Candidates.isBetterBalanced(other.balanced(), found.balanced())
        ? chosen(other, found, context)
        : chosen(found, other, context);
  }

  /** {@return what suits the caller best, of a search whose balanced draft counts and another} */
  private GraphState chosen(Found first, Found other, PassContext context) {
    var candidates = first.candidates().and(other.candidates());
    var balanced = first.balanced();
    var objective = objective(candidates, balanced, context);
    var chosen = candidates.best(objective, balanced);
    var of = first.isBest(chosen, objective) ? first : other;
    return chosen
        .with(FRONTIER, candidates.frontier(objective, balanced))
        .with(ORDER, decision(chosen, of.given(), of.orders(), context));
  }

  private Found search(GraphState state, PassContext context) {
    var first = Pipeline.runAll(draft, state, context);
    var overlaps = new OverlapDrafts(draft, context);
    var copying = copyingRows(first, context);
    var lean =
        Stream.of(withoutWorkspaces(first, overlaps.alone(first), context), copying)
            .flatMap(Optional::stream)
            .toList();
    var given = first;
    for (var other : lean) {
      given = isBetter(other, given) ? other : given;
    }
    // A collective that reads rows keeps the tensor that they are of.
    var candidates = new Candidates(overlaps.alone(copying.orElse(given)));
    candidates.offer(overlaps.alone(given));
    candidates.offer(overlaps.alone(first));
    candidates.offer(first);
    lean.forEach(candidates::offer);
    RewriteSearch.dropped(first).forEach(candidates::offer);
    var orders = orders(given, context, candidates);
    var balanced = candidates.affordable(lowered(orders.balanced(), overlaps, candidates, context));
    // The leanest draft so far may need still less without overlap.
    candidates.offer(overlaps.alone(candidates.leanest()));
    return new Found(given, orders, candidates, balanced);
  }

  /** The same graph with other variants, if some take workspaces. */
  private Optional<GraphState> withoutWorkspaces(
      GraphState given, GraphState alone, PassContext context) {
    boolean any =
        Stream.of(given, alone)
            .anyMatch(state -> state.get(ReserveWorkspaces.WORKSPACES).total() > 0);
    return any
        ? Optional.of(given.withGraphs(given.graphs()).with(SelectVariants.NO_WORKSPACES, true))
            .map(state -> Pipeline.runAll(draft, state, context))
        : Optional.empty();
  }

  /** The same graph with copies of operands whose rows are apart, if some are read as they lie. */
  private Optional<GraphState> copyingRows(GraphState given, PassContext context) {
    var selections = given.get(SelectVariants.SELECTIONS);
    boolean any =
        given.analyses().stream()
            .anyMatch(
                graph ->
                    IntStream.range(0, selections.size())
                        .anyMatch(k -> readsRows(graph, k, selections.get(k).variant())));
    return any
        ? Optional.of(Pipeline.runAll(draft, given.copyingRows(), context))
        : Optional.empty();
  }

  private static boolean readsRows(Analyses graph, int k, Variant variant) {
    var spec = VariantSpec.of(graph.collectives().get(k).kind(), variant);
    return graph.constraints().operands(k).stream()
        .anyMatch(slot -> slot.rows().filter(spec::reads).isPresent());
  }

  /**
   * Whether a draft without workspaces, or with copies, saves memory that matters, also beside the
   * inputs, and takes hardly longer.
   */
  private static boolean isBetter(GraphState lean, GraphState first) {
    long inputs =
        first.graphs().stream()
            .mapToLong(
                graph ->
                    graph.inputs().stream()
                        .filter(Value::isTensor)
                        .mapToLong(input -> input.tensor().storageBytes())
                        .sum())
            .max()
            .orElse(0);
    double most = (figures(first).peakBytes() + inputs) * (1 - CandidateOrders.MIN_GAIN);
    return figures(lean).peakBytes() + inputs <= most && !Candidates.pays(first, lean);
  }

  /** The caller's objective, or the lowest peak if that plan exceeds the memory limit. */
  private Objective objective(Candidates candidates, GraphState balanced, PassContext context) {
    var wanted = context.options().objective();
    var limit = context.options().memoryLimit();
    if (limit.isEmpty()) {
      return wanted;
    }
    var placed = Pipeline.run(allocate, candidates.best(wanted, balanced), context);
    return FitMemory.needed(placed) <= limit.getAsLong() ? wanted : Objective.MEMORY;
  }

  private Orders orders(GraphState given, PassContext context, Candidates candidates) {
    var budget = context.options().reorderBudget();
    if (budget.isEmpty()) {
      return new Orders(given, Optional.empty());
    }
    double maxMicros = figures(given).micros() * (1 + budget.getAsDouble());
    long maxBytes = maxBytes(given);
    var tooSlow = Optional.<GraphState>empty();
    for (var freedom : Freedom.values()) {
      var best = Optional.<GraphState>empty();
      for (var graphs : candidates(given, freedom)) {
        var tried = Pipeline.runAll(draft, given.withGraphs(graphs), context);
        if (figures(tried).peakBytes() > maxBytes) {
          continue;
        }
        var reordered = candidates.offer(tried.with(ORDER, reordered(given, tried)));
        if (figures(tried).micros() <= maxMicros) {
          best = Optional.of(leaner(best, reordered));
        } else {
          tooSlow = Optional.of(leaner(tooSlow, reordered));
        }
      }
      if (best.isPresent()) {
        var placed = Pipeline.run(allocate, best.get(), context);
        if (AllocateMemory.totalBytes(placed) <= maxBytes) {
          return new Orders(placed, Optional.of(placed));
        }
      }
      if (tooSlow.isEmpty()) {
        break;
      }
    }
    return new Orders(given, tooSlow);
  }

  /** A draft, or one with less in flight that saves memory and takes hardly more time. */
  private GraphState lowered(
      GraphState made, OverlapDrafts overlaps, Candidates candidates, PassContext context) {
    var alone = candidates.offer(overlaps.alone(made));
    double maxMicros = figures(made).micros() * (1 + MAX_LONGER);
    long maxBytes = maxBytes(made);
    var best = Optional.<GraphState>empty();
    for (var tried : overlaps.between(made, alone)) {
      candidates.offer(tried);
      if (figures(tried).micros() <= maxMicros && figures(tried).peakBytes() <= maxBytes) {
        best = Optional.of(leaner(best, tried));
      }
    }
    return best.map(tried -> Pipeline.run(allocate, tried, context))
        .filter(placed -> AllocateMemory.totalBytes(placed) <= maxBytes)
        .orElse(made);
  }

  /** The most memory of a draft that is tried because it saves memory. */
  private static long maxBytes(GraphState made) {
    return (long) (figures(made).peakBytes() * (1 - CandidateOrders.MIN_GAIN));
  }

  private static GraphState leaner(Optional<GraphState> best, GraphState tried) {
    return best.map(before -> Candidates.leaner(before, tried)).orElse(tried);
  }

  private static OrderDecision decision(
      GraphState chosen, GraphState given, Orders orders, PassContext context) {
    var own = figures(chosen);
    if (chosen.facts().find(ORDER).isPresent()) {
      return reordered(given, chosen);
    }
    if (context.options().reorderBudget().isEmpty()) {
      return new OrderDecision(Outcome.OFF, own, own);
    }
    return orders
        .other()
        .map(Candidates::figures)
        .filter(other -> other.peakBytes() < own.peakBytes() && other.micros() > own.micros())
        .map(other -> new OrderDecision(Outcome.TOO_SLOW, own, other))
        .orElseGet(() -> new OrderDecision(Outcome.NO_GAIN, own, own));
  }

  private static OrderDecision reordered(GraphState given, GraphState other) {
    return new OrderDecision(Outcome.REORDERED, figures(given), figures(other));
  }

  /** The best order of each rank class, then the second best, or the last that there is. */
  private static ImmutableList<ImmutableList<Graph>> candidates(GraphState given, Freedom freedom) {
    var found =
        given.analyses().stream().map(graph -> CandidateOrders.candidates(graph, freedom)).toList();
    int count = found.stream().mapToInt(List::size).max().orElse(0);
    var candidates = ImmutableList.<ImmutableList<Graph>>builder();
    for (int i = 0; i < Math.min(maxTried(given), count); i++) {
      var graphs = ImmutableList.<Graph>builder();
      for (int c = 0; c < found.size(); c++) {
        var own = found.get(c);
        graphs.add(own.isEmpty() ? given.graphs().get(c) : own.get(Math.min(i, own.size() - 1)));
      }
      candidates.add(graphs.build());
    }
    return candidates.build();
  }

  private static int maxTried(GraphState given) {
    return Math.clamp(MAX_OPS_TRIED / Math.max(1, ops(given)), 1, MAX_TRIED);
  }

  private static int ops(GraphState state) {
    return state.graphs().stream().mapToInt(graph -> graph.ops().size()).sum();
  }
}
