package dev.symplan.planner.plan;

import dev.symplan.planner.machine.Alignment;

/**
 * A stretch of memory that holds one storage for part of the program.
 *
 * @param name the value that it is first written as, or the group that a workspace is of
 * @param symmetric whether peers or a symmetric window need it at the same offset on every rank;
 *     false for local buffers, also when they lie in a hole of the symmetric arena
 * @param offset bytes from the start of the arena; for external buffers, the input's or output's
 *     position in the graph's signature
 * @param bytes its size; 0 only for empty tensors
 * @param first the step that first writes it; -1 if it holds data before the program
 * @param last the last step that reads or writes it, remote ranks and unfinished collectives
 *     included; the number of steps where it holds data after the program
 */
public record Buffer(
    String name, ArenaKind arena, boolean symmetric, long offset, long bytes, int first, int last) {

  public Buffer {
    if (offset < 0 || bytes < 0) {
      throw new IllegalArgumentException("buffer %s: negative offset or size".formatted(name));
    }
    if (symmetric && arena != ArenaKind.SYMMETRIC) {
      throw new IllegalArgumentException(
          "buffer %s is symmetric but lies in %s memory".formatted(name, arena.text()));
    }
    if (first < -1 || last < first) {
      throw new IllegalArgumentException(
          "buffer %s lives from step %s to %s".formatted(name, first, last));
    }
  }

  /** {@return the bytes that it occupies: its size rounded up to {@link Alignment#BYTES}} */
  public long alignedBytes() {
    return Alignment.roundUp(bytes);
  }

  /** {@return the first byte after it} */
  public long end() {
    return offset + bytes;
  }
}
