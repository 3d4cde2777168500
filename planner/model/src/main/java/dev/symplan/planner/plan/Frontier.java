package dev.symplan.planner.plan;

import dev.symplan.planner.options.Objective;
import dev.symplan.planner.plan.OrderDecision.Figures;

/**
 * The tradeoff between time and memory: the three plans between which the caller can choose. The
 * figures are those of {@link OrderDecision}, before offsets are assigned.
 *
 * @param chosen the plan that the caller asked for
 * @param minGain the fraction by which the predicted time must fall for a balanced plan to take
 *     more memory than the graph does by itself
 * @param alone the figures of the graph by itself: in its own order, with no collective beside
 *     compute
 * @param time the figures of the fastest plan
 * @param balanced the figures of the balanced plan
 * @param memory the figures of the plan with the lowest peak
 */
public record Frontier(
    Objective chosen,
    double minGain,
    Figures alone,
    Figures time,
    Figures balanced,
    Figures memory) {

  /**
   * @throws IllegalArgumentException when a plan is better at what another one is made for, or the
   *     balanced plan breaks its rule
   */
  public Frontier {
    if (time.micros() > Math.min(balanced.micros(), memory.micros())) {
      throw new IllegalArgumentException("another plan is faster than the fastest");
    }
    if (memory.peakBytes() > Math.min(balanced.peakBytes(), time.peakBytes())) {
      throw new IllegalArgumentException("another plan has a lower peak than the lowest");
    }
    if (!pays(balanced, alone, minGain)) {
      throw new IllegalArgumentException(
          "the balanced plan takes more memory than the graph by itself, and gains too little");
    }
  }

  /** {@return whether a plan takes no more memory than the graph by itself, or gains enough} */
  public static boolean pays(Figures plan, Figures alone, double minGain) {
    return plan.peakBytes() <= alone.peakBytes() || plan.micros() <= alone.micros() * (1 - minGain);
  }

  /** {@return the figures of the plan that is best at something} */
  public Figures of(Objective objective) {
    return switch (objective) {
      case TIME -> time;
      case BALANCED -> balanced;
      case MEMORY -> memory;
    };
  }
}
