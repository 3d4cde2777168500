package dev.symplan.planner.machine;

/**
 * The bytes that pass the links of the busiest ranks if each of {@code n} ranks has an operand of
 * {@code b} bytes: the bytes that leave the GPU that sends most, stored or read by peers, and the
 * bytes that reach the GPU that receives most.
 */
public enum Wire {
  NOTHING((b, n) -> 0),
  /** The whole operand. */
  ONCE((b, n) -> b),
  /** The whole operand for each peer. */
  TO_PEERS((b, n) -> (n - 1.0) * b),
  /** A slice for each peer. */
  SLICES((b, n) -> (n - 1.0) / n * b),
  /** A slice for each peer to reduce, and a reduced one for each. */
  SLICES_TWICE((b, n) -> 2 * (n - 1.0) / n * b),
  /** The root sends to each peer. */
  FROM_ROOT((b, n) -> (n - 1.0) * b, (b, n) -> b),
  /** The switch reads all that it adds, and takes each sum once. */
  SWITCH_REDUCES((b, n) -> b + (double) b / n),
  /** The switch reads all that it adds, once for each rank, and sends each rank its sum. */
  SWITCH_REDUCES_FOR_EACH((b, n) -> (double) n * b, (b, n) -> b),
  /** The switch reads all that it adds, and sends each rank its slice. */
  SWITCH_SCATTERS((b, n) -> b, (b, n) -> (double) b / n),
  /** The switch takes each operand once, and sends it to all. */
  SWITCH_GATHERS((b, n) -> b, (b, n) -> (n - 1.0) * b);

  @FunctionalInterface
  private interface Formula {
    double bytes(long operand, int ranks);
  }

  private final Formula sent;
  private final Formula received;

  Wire(Formula both) {
    this(both, both);
  }

  Wire(Formula sent, Formula received) {
    this.sent = sent;
    this.received = received;
  }

  /** {@return the bytes sent, for an operand of so many bytes} */
  public double sent(long operand, int ranks) {
    return sent.bytes(operand, ranks);
  }

  /** {@return the bytes received} */
  public double received(long operand, int ranks) {
    return received.bytes(operand, ranks);
  }

  /** {@return the larger of both} */
  public double bytes(long operand, int ranks) {
    return Math.max(sent(operand, ranks), received(operand, ranks));
  }
}
