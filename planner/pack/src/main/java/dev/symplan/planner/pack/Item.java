package dev.symplan.planner.pack;

/**
 * A stretch of memory that is needed for part of the time.
 *
 * @param start the first step at which it is live
 * @param end the first step at which it is not live any more: it lives in {@code [start, end)}
 * @param size bytes, at least 1; it occupies this much rounded up to its alignment
 * @param alignment the power of two of which its offset must be a multiple
 */
public record Item(int start, int end, long size, long alignment) {

  /** So that sums of sizes and rounding stay far from the end of a long. */
  static final long MAX_SIZE = 1L << 56;

  public Item {
    if (end <= start) {
      throw new IllegalArgumentException("a buffer lives in [" + start + ", " + end + ")");
    }
    if (size <= 0 || size > MAX_SIZE) {
      throw new IllegalArgumentException("a buffer has " + size + " bytes");
    }
    if (alignment <= 0 || alignment > MAX_SIZE || Long.bitCount(alignment) != 1) {
      throw new IllegalArgumentException("alignment " + alignment + " is not a power of two");
    }
  }

  /** {@return the bytes that it occupies: its size rounded up to its alignment} */
  public long paddedSize() {
    return alignUp(size, alignment);
  }

  boolean overlaps(Item other) {
    return start < other.end && other.start < end;
  }

  static long alignUp(long offset, long alignment) {
    return (offset + alignment - 1) & -alignment;
  }
}
