package dev.symplan.planner;

/**
 * Where a value's first element is.
 *
 * @param buffer an index into {@link RankPlan#buffers}; -1 for what has no memory: numbers, None,
 *     and what a fused step passes from op to op
 * @param offset bytes from the start of the buffer
 */
public record Placement(int buffer, long offset) {
  /** For what has no memory. */
  public static final Placement NONE = new Placement(-1, 0);

  public Placement {
    if (buffer < -1 || offset < 0) {
      throw new IllegalArgumentException("no buffer " + buffer + " at offset " + offset);
    }
  }

  public boolean exists() {
    return buffer >= 0;
  }
}
