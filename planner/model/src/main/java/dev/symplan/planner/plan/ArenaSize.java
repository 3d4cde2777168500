package dev.symplan.planner.plan;

/**
 * The size of an arena.
 *
 * @param bytes its size per rank
 * @param bound the minimum for any placement of the same live ranges
 */
public record ArenaSize(long bytes, long bound) {
  public ArenaSize {
    if (bytes < bound || bound < 0) {
      throw new IllegalArgumentException("arena of %s bytes, bound %s".formatted(bytes, bound));
    }
  }
}
