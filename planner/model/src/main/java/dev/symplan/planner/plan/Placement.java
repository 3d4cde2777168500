package dev.symplan.planner.plan;

/**
 * The location of a value's first element.
 *
 * <p>A rank's operand of an all_gather can be its part of the result, and its result of a
 * reduce_scatter can stay in the operand. Then the offset depends on the rank: it is {@code stride}
 * bytes after that of the previous rank in the group. If that is less than the value has, the value
 * is rows of so many bytes, and between two of them are the rows of the other ranks.
 *
 * @param buffer an index into {@link RankPlan#buffers}; -1 for what has no memory: numbers, None,
 *     and what a fused step passes from op to op
 * @param offset bytes from the start of the buffer, on the first rank of the group where it depends
 *     on the rank
 * @param shardOf the collective whose whole it is a rank's shard of, an index; {@link #NO_SHARD}
 *     where all ranks have the same offset
 * @param stride the bytes of one shard, or of one of its rows; 0 if it is not a shard
 */
public record Placement(int buffer, long offset, int shardOf, long stride) {
  /** In {@link #shardOf}. */
  public static final int NO_SHARD = -1;

  /** For what has no memory. */
  public static final Placement NONE = new Placement(-1, 0);

  public Placement {
    if (buffer < -1 || offset < 0) {
      throw new IllegalArgumentException("no buffer " + buffer + " at offset " + offset);
    }
    if (shardOf < NO_SHARD || stride < 0 || (shardOf == NO_SHARD && stride != 0)) {
      throw new IllegalArgumentException("no shard of %s at %s".formatted(shardOf, stride));
    }
  }

  /** The same offset on every rank. */
  public Placement(int buffer, long offset) {
    this(buffer, offset, NO_SHARD, 0);
  }

  /** {@return whether the value has memory} */
  public boolean exists() {
    return buffer >= 0;
  }

  /** {@return whether the offset depends on the rank} */
  public boolean isShard() {
    return shardOf != NO_SHARD;
  }
}
