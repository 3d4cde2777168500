package dev.symplan.planner.pipeline;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.order.CandidateOrders;
import dev.symplan.planner.pass.order.CandidateOrders.Freedom;
import dev.symplan.planner.pass.place.AllocateMemory;
import dev.symplan.planner.pass.place.MeasureDraft;
import dev.symplan.planner.plan.OrderDecision;
import dev.symplan.planner.plan.OrderDecision.Figures;
import dev.symplan.planner.plan.OrderDecision.Outcome;
import java.util.List;
import java.util.Optional;

/**
 * Chooses between the given order and those that {@link CandidateOrders} proposes, by what a plan
 * made of each really takes: the memory of both arenas, and the predicted time, which may grow by
 * the caller's budget only.
 */
final class OrderSearch extends GraphPass {
  static final Fact<OrderDecision> ORDER = Fact.lasting("order");

  /** How many orders are tried, for each freedom: of graphs of many ops, fewer. */
  private static final int MAX_TRIED = 3;

  private static final int MAX_OPS_TRIED = 300_000;

  private final ImmutableList<GraphPass> draft;
  private final AllocateMemory allocate = new AllocateMemory();

  OrderSearch(ImmutableList<GraphPass> draft) {
    super("reorder", facts(), facts(ORDER));
    this.draft = draft;
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    var given = Pipeline.runAll(draft, state, context);
    var figures = figures(given);
    if (context.options().reorderBudget().isEmpty()) {
      return given.with(ORDER, new OrderDecision(Outcome.OFF, figures, figures));
    }
    double maxMicros = figures.micros() * (1 + context.options().reorderBudget().getAsDouble());
    double maxBytes = figures.peakBytes() * (1 - CandidateOrders.MIN_GAIN);
    var tooSlow = Optional.<GraphState>empty();
    for (var freedom : Freedom.values()) {
      var best = Optional.<GraphState>empty();
      for (var graphs : candidates(given, freedom)) {
        var tried = Pipeline.runAll(draft, given.withGraphs(graphs), context);
        if (figures(tried).peakBytes() > maxBytes) {
          continue;
        }
        if (figures(tried).micros() <= maxMicros) {
          best = Optional.of(better(tried, best));
        } else {
          tooSlow = Optional.of(better(tried, tooSlow));
        }
      }
      if (best.isPresent()) {
        var placed = Pipeline.run(allocate, best.get(), context);
        if (AllocateMemory.totalBytes(placed) <= maxBytes) {
          return placed.with(ORDER, new OrderDecision(Outcome.REORDERED, figures, figures(placed)));
        }
      }
      if (tooSlow.isEmpty()) {
        break;
      }
    }
    var decision =
        tooSlow
            .map(slow -> new OrderDecision(Outcome.TOO_SLOW, figures, figures(slow)))
            .orElseGet(() -> new OrderDecision(Outcome.NO_GAIN, figures, figures));
    return given.with(ORDER, decision);
  }

  private static Figures figures(GraphState state) {
    return state.get(MeasureDraft.FIGURES);
  }

  private static GraphState better(GraphState tried, Optional<GraphState> best) {
    if (best.isEmpty()) {
      return tried;
    }
    var before = figures(best.get());
    var now = figures(tried);
    boolean less =
        now.peakBytes() != before.peakBytes()
            ? now.peakBytes() < before.peakBytes()
            : now.micros() < before.micros();
    return less ? tried : best.get();
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
    int ops = given.graphs().stream().mapToInt(graph -> graph.ops().size()).sum();
    return Math.clamp(MAX_OPS_TRIED / Math.max(1, ops), 1, MAX_TRIED);
  }
}
