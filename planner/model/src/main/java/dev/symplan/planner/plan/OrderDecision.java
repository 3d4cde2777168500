package dev.symplan.planner.plan;

/**
 * What became of the order of a plan's ops.
 *
 * @param given what the given order takes
 * @param other what the best other order takes, whether or not it was chosen; the given order again
 *     where there was none
 */
public record OrderDecision(Outcome outcome, Figures given, Figures other) {

  /** Why the ops run in the order in which they do. */
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
   * What an order takes on the rank that needs most.
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
