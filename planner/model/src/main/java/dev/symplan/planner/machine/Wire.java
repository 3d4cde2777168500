package dev.symplan.planner.machine;

/**
 * How many bytes pass one direction of the busiest rank's link, where each of {@code n} ranks has
 * an operand of {@code b} bytes.
 */
public enum Wire {
  NOTHING((b, n) -> 0),
  /** The whole operand. */
  ONCE((b, n) -> b),
  /** The whole operand for each peer. */
  FOR_EACH_PEER((b, n) -> (n - 1.0) * b),
  /** One slice. */
  SLICE((b, n) -> (double) b / n),
  /** A slice for each peer. */
  SLICE_FOR_EACH_PEER((b, n) -> (n - 1.0) / n * b),
  /** A slice for each peer to reduce, and a reduced one for each. */
  TWO_SLICES_FOR_EACH_PEER((b, n) -> 2 * (n - 1.0) / n * b),
  /** The switch reads all that it adds, and takes each sum once. */
  ONCE_AND_SLICE((b, n) -> b + (double) b / n);

  @FunctionalInterface
  private interface Formula {
    double bytes(long operand, int ranks);
  }

  private final Formula formula;

  Wire(Formula formula) {
    this.formula = formula;
  }

  /**
   * {@return the bytes}
   *
   * @param operand bytes of one rank's operand
   */
  public double bytes(long operand, int ranks) {
    return formula.bytes(operand, ranks);
  }
}
