package dev.symplan.planner.plan;

/**
 * How much memory an arena takes.
 *
 * @param bytes its size per rank
 * @param bound what any placement of the same live ranges needs at least
 */
public record ArenaSize(long bytes, long bound) {
  public ArenaSize {
    if (bytes < bound || bound < 0) {
      throw new IllegalArgumentException("arena of %s bytes, bound %s".formatted(bytes, bound));
    }
  }
}
