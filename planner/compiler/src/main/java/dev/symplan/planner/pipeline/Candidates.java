package dev.symplan.planner.pipeline;

import dev.symplan.planner.options.Objective;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.order.CandidateOrders;
import dev.symplan.planner.pass.place.MeasureDraft;
import dev.symplan.planner.plan.Frontier;
import dev.symplan.planner.plan.OrderDecision.Figures;
import java.util.Comparator;

/** The best of all drafts that were tried, by what a plan may be good at. */
final class Candidates {
  /**
   * By which part the predicted time must fall for more memory at the peak. Measured times vary as
   * much from run to run.
   */
  static final double MIN_GAIN = 0.03;

  private static final Comparator<GraphState> BY_TIME =
      Comparator.<GraphState>comparingDouble(state -> figures(state).micros())
          .thenComparingLong(state -> figures(state).peakBytes());

  private static final Comparator<GraphState> BY_PEAK =
      Comparator.<GraphState>comparingLong(state -> figures(state).peakBytes())
          .thenComparingDouble(state -> figures(state).micros());

  private final Figures alone;
  private GraphState fastest;
  private GraphState leanest;

  /** The fastest of those with no higher peak than the graph by itself. */
  private GraphState affordable;

  /**
   * @param alone the draft in the graph's own order, without overlap
   */
  Candidates(GraphState alone) {
    this(alone, alone, alone, figures(alone));
  }

  private Candidates(GraphState fastest, GraphState leanest, GraphState affordable, Figures alone) {
    this.fastest = fastest;
    this.leanest = leanest;
    this.affordable = affordable;
    this.alone = alone;
  }

  static Figures figures(GraphState draft) {
    return draft.get(MeasureDraft.FIGURES);
  }

  /** {@return the draft with the lower peak; of two as low, the faster} */
  static GraphState leaner(GraphState a, GraphState b) {
    return min(BY_PEAK, a, b);
  }

  /** The first, unless the second is less. */
  private static GraphState min(Comparator<GraphState> order, GraphState a, GraphState b) {
    return order.compare(b, a) < 0 ? b : a;
  }

  /** Takes in a draft; of two that are as good, the first stays. */
  GraphState offer(GraphState draft) {
    fastest = min(BY_TIME, fastest, draft);
    leanest = leaner(leanest, draft);
    if (figures(draft).peakBytes() <= alone.peakBytes()) {
      affordable = min(BY_TIME, affordable, draft);
    }
    return draft;
  }

  GraphState leanest() {
    return leanest;
  }

  /** {@return whether a draft needs no more memory than another one, or gains enough} */
  static boolean pays(GraphState draft, GraphState other) {
    return Frontier.pays(figures(draft), figures(other), MIN_GAIN);
  }

  /** {@return the drafts of two searches; the graph by itself is that of the first} */
  Candidates and(Candidates other) {
    var all = new Candidates(fastest, leanest, affordable, alone);
    all.fastest = min(BY_TIME, fastest, other.fastest);
    all.leanest = leaner(leanest, other.leanest);
    return all;
  }

  /**
   * {@return whether a draft is better balanced: it saves memory, or takes less time for as much}
   */
  static boolean isBetterBalanced(GraphState draft, GraphState other) {
    var lean = leaner(other, draft);
    var fast = min(BY_TIME, other, draft);
    return (saves(lean, fast) && !pays(fast, lean) ? lean : fast) == draft;
  }

  private static boolean saves(GraphState lean, GraphState fast) {
    return figures(lean).peakBytes() <= figures(fast).peakBytes() * (1 - CandidateOrders.MIN_GAIN);
  }

  /** {@return a draft, or if its gain is not worth its memory, the best one that needs less} */
  GraphState affordable(GraphState draft) {
    return Frontier.pays(figures(draft), alone, MIN_GAIN) ? draft : affordable;
  }

  /** {@return the draft that is best at something} */
  GraphState best(Objective objective, GraphState balanced) {
    return switch (objective) {
      case TIME -> min(BY_TIME, balanced, fastest);
      case BALANCED -> balanced;
      case MEMORY -> leaner(balanced, leanest);
    };
  }

  Frontier frontier(Objective chosen, GraphState balanced) {
    return new Frontier(
        chosen,
        MIN_GAIN,
        alone,
        figures(best(Objective.TIME, balanced)),
        figures(balanced),
        figures(best(Objective.MEMORY, balanced)));
  }
}
