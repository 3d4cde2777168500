package dev.symplan.planner.machine;

/** Where buffers, and what kernels move at once, may begin. */
public final class Alignment {

  /** What every buffer's offset is a multiple of, in bytes: a cache line of the GPU. */
  public static final long BYTES = 128;

  /** What one vector load or store of the collective kernels moves, in bytes. */
  public static final int VECTOR = 16;

  private Alignment() {}

  /** {@return a size rounded up to {@link #BYTES}} */
  public static long roundUp(long bytes) {
    return (bytes + BYTES - 1) / BYTES * BYTES;
  }
}
