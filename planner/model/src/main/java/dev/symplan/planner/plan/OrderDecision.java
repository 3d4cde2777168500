package dev.symplan.planner.plan;

/**
 * The decision about the order of a plan's ops.
 *
 * @param given the time and memory of the given order
 * @param other the time and memory of the best other order, chosen or not; those of the given order
 *     if no other was found
 */
public record OrderDecision(Outcome outcome, Figures given, Figures other) {

  /** The reason for the order of the ops. */
  public enum Outcome {
    /** The options say that the given order stays. */
    OFF,
    /** No order was found that needs so much less that a change is worth it. */
    NO_GAIN,
    /** The other order needs less memory, but more time than the budget allows. */
    TOO_SLOW,
    /** The other order needs less memory, and was chosen. */
    REORDERED
  }

  /**
   * The time and memory of an order, on the rank that needs most.
   *
   * @param peakBytes the most bytes of both arenas that are live at one step
   * @param micros the predicted time of one run
   */
  public record Figures(long peakBytes, double micros) {}

  /** {@return the figures of the order in which the ops run} */
  public Figures chosen() {
    return outcome == Outcome.REORDERED ? other : given;
  }
}
