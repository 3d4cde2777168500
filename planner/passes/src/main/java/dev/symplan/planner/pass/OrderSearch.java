package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pass.order.CandidateOrders;
import dev.symplan.planner.pass.place.Allocate;
import dev.symplan.planner.plan.OrderDecision;
import dev.symplan.planner.plan.OrderDecision.Figures;
import dev.symplan.planner.plan.OrderDecision.Outcome;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/**
 * Chooses between the given order and those that {@link CandidateOrders} proposes, by what a plan
 * made of each really takes: the memory of both arenas, and the predicted time, which may grow by
 * the caller's budget only.
 *
 * @param memory the arenas of the chosen order
 */
public record OrderSearch(PlanDraft draft, Allocate.Result memory, OrderDecision reordering) {

  /** How many orders are tried, for each freedom: of graphs of many ops, fewer. */
  private static final int MAX_TRIED = 3;

  private static final int MAX_OPS_TRIED = 300_000;

  /** A draft, and what it takes. */
  private record Tried(PlanDraft draft, Figures figures) {}

  /**
   * @param draftOf makes drafts of other orders of the graphs, one for each
   */
  static OrderSearch choose(
      PlanDraft given, Function<ImmutableList<Graph>, PlanDraft> draftOf, CompileOptions options) {
    var figures = given.figures();
    if (options.reorderBudget().isEmpty()) {
      return keep(given, figures, Outcome.OFF, figures);
    }
    double mostMicros = figures.micros() * (1 + options.reorderBudget().getAsDouble());
    double mostBytes = figures.peakBytes() * (1 - CandidateOrders.MIN_GAIN);
    var tooSlow = Optional.<Tried>empty();
    for (var freedom : CandidateOrders.Freedom.values()) {
      var best = Optional.<Tried>empty();
      var candidates =
          given.graphs().stream()
              .map(graph -> CandidateOrders.candidates(graph, options.fusion(), freedom))
              .toList();
      int count = candidates.stream().mapToInt(ImmutableList::size).max().orElse(0);
      for (int i = 0; i < Math.min(mostTried(given), count); i++) {
        var tried = tried(draftOf.apply(combination(given, candidates, i)));
        if (tried.figures().peakBytes() <= mostBytes) {
          if (tried.figures().micros() <= mostMicros) {
            best = Optional.of(better(tried, best));
          } else {
            tooSlow = Optional.of(better(tried, tooSlow));
          }
        }
      }
      if (best.isPresent()) {
        var memory = best.get().draft().allocate();
        if (memory.totalBytes() <= mostBytes) {
          return new OrderSearch(
              best.get().draft(),
              memory,
              new OrderDecision(Outcome.REORDERED, figures, best.get().figures()));
        }
      }
      if (tooSlow.isEmpty()) {
        break;
      }
    }
    return tooSlow
        .map(tried -> keep(given, figures, Outcome.TOO_SLOW, tried.figures()))
        .orElseGet(() -> keep(given, figures, Outcome.NO_GAIN, figures));
  }

  private static int mostTried(PlanDraft given) {
    int ops = given.graphs().stream().mapToInt(graph -> graph.graph().ops().size()).sum();
    return Math.clamp(MAX_OPS_TRIED / Math.max(1, ops), 1, MAX_TRIED);
  }

  private static OrderSearch keep(
      PlanDraft given, Figures figures, Outcome outcome, Figures other) {
    return new OrderSearch(given, given.allocate(), new OrderDecision(outcome, figures, other));
  }

  private static Tried tried(PlanDraft draft) {
    return new Tried(draft, draft.figures());
  }

  private static Tried better(Tried tried, Optional<Tried> best) {
    if (best.isEmpty()) {
      return tried;
    }
    var before = best.get().figures();
    var now = tried.figures();
    boolean less =
        now.peakBytes() != before.peakBytes()
            ? now.peakBytes() < before.peakBytes()
            : now.micros() < before.micros();
    return less ? tried : best.get();
  }

  /** The i-th best order of each graph, or the last that there is. */
  private static ImmutableList<Graph> combination(
      PlanDraft given, List<ImmutableList<Graph>> candidates, int i) {
    var graphs = ImmutableList.<Graph>builder();
    for (int g = 0; g < candidates.size(); g++) {
      var own = candidates.get(g);
      graphs.add(
          own.isEmpty() ? given.graphs().get(g).graph() : own.get(Math.min(i, own.size() - 1)));
    }
    return graphs.build();
  }
}
