package dev.symplan.planner.plan;

/**
 * The location of a value's first element.
 *
 * <p>A rank's operand of an all_gather can be its part of the result, and its result of a
 * reduce_scatter can stay in the operand. Then the offset depends on the rank: it is {@code stride}
 * bytes after that of the previous rank in the group. If that is less than the value has, the value
 * is rows of so many bytes, and between two of them are the rows of the other ranks.
 *
 * <p>The result of a collective can be a piece of what a later op joins along a dimension that is
 * not the first. Then it is rows, too, at the same places on every rank; between two of them are
 * those of the other pieces.
 *
 * @param buffer an index into {@link RankPlan#buffers}; -1 for what has no memory: numbers, None,
 *     and what a fused step passes from op to op
 * @param offset bytes from the start of the buffer, on the first rank of the group where it depends
 *     on the rank
 * @param shardOf the collective whose whole it is a rank's shard of, an index; {@link #NO_SHARD}
 *     where all ranks have the same offset
 * @param stride the bytes of one shard, or of one row; 0 if it is neither a shard nor in rows
 * @param pitch bytes from the beginning of a row to that of the next one, between which other
 *     pieces lie; 0 if it is not such a piece
 */
public record Placement(int buffer, long offset, int shardOf, long stride, long pitch) {
  /** In {@link #shardOf}. */
  public static final int NO_SHARD = -1;

  /** For what has no memory. */
  public static final Placement NONE = new Placement(-1, 0);

  public Placement {
    if (buffer < -1 || offset < 0) {
      throw new IllegalArgumentException("no buffer " + buffer + " at offset " + offset);
    }
    if (shardOf < NO_SHARD || stride < 0 || (shardOf == NO_SHARD && pitch == 0 && stride != 0)) {
      throw new IllegalArgumentException("no shard of %s at %s".formatted(shardOf, stride));
    }
    if (pitch < 0 || (pitch > 0 && (shardOf != NO_SHARD || stride == 0 || pitch < stride))) {
      throw new IllegalArgumentException(
          "no rows of %s bytes, %s apart, of %s".formatted(stride, pitch, shardOf));
    }
  }

  /** The same offset on every rank. */
  public Placement(int buffer, long offset) {
    this(buffer, offset, NO_SHARD, 0);
  }

  /** A rank's shard of a collective's whole. */
  public Placement(int buffer, long offset, int shardOf, long stride) {
    this(buffer, offset, shardOf, stride, 0);
  }

  /** {@return a piece of what a later op joins: rows of so many bytes, at such a distance} */
  public static Placement rows(int buffer, long offset, long bytes, long pitch) {
    return new Placement(buffer, offset, NO_SHARD, bytes, pitch);
  }

  /** {@return whether the value has memory} */
  public boolean exists() {
    return buffer >= 0;
  }

  /** {@return whether the offset depends on the rank} */
  public boolean isShard() {
    return shardOf != NO_SHARD;
  }

  /** {@return whether the value is a piece whose rows lie between those of others} */
  public boolean isInRows() {
    return pitch > 0;
  }

  /** {@return from the first of a value's bytes to the end of the last one, on one rank} */
  public long extent(long bytes) {
    return isInRows() && bytes > 0
        ? (bytes - 1) / stride * pitch + (bytes - 1) % stride + 1
        : bytes;
  }
}
