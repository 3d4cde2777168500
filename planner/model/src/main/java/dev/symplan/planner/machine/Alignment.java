package dev.symplan.planner.machine;

/** The alignment of buffers, and of the vectors that kernels move. */
public final class Alignment {

  /** Every buffer's offset is a multiple of this, in bytes: a cache line of the GPU. */
  public static final long BYTES = 128;

  /** The bytes that one vector load or store of the collective kernels moves. */
  public static final int VECTOR = 16;

  private Alignment() {}

  /** {@return a size rounded up to {@link #BYTES}} */
  public static long roundUp(long bytes) {
    return (bytes + BYTES - 1) / BYTES * BYTES;
  }
}
