package dev.symplan.planner.pack;

import com.google.common.primitives.ImmutableLongArray;
import java.util.BitSet;

/**
 * Gives offsets to buffers of known lifetimes, and keeps the arena as small as it can. This is
 * dynamic storage allocation, which is NP-hard.
 *
 * <p>Deterministic: the same buffers in the same order get the same offsets everywhere.
 */
public final class Packer {
  private Packer() {}

  /** {@return offsets for buffers in one arena, with {@link PackOptions#DEFAULT}} */
  public static Packing pack(PackingProblem problem) {
    return pack(problem, PackOptions.DEFAULT);
  }

  /** {@return offsets for buffers in one arena} */
  public static Packing pack(PackingProblem problem, PackOptions options) {
    var items = Items.of(problem, Sections.of(problem), 0, problem.count());
    var solver = new Solver(items, options);
    solver.solve();
    return new Packing(solver.offsets(), new BitSet(), solver.height(), solver.lowerBound());
  }

  /**
   * Packs buffers where a first arena's holes may be used: each buffer lies either in the first
   * arena, where it meets none of its buffers, or in a second one, which is kept as low as can be.
   *
   * @param fixed the first arena's buffers
   * @param fixedOffsets their offsets, by position
   * @param arena bytes of the first arena
   * @param free the buffers to pack
   * @return where each free buffer lies; the height and its bound are those of the second arena
   */
  public static Packing packInto(
      PackingProblem fixed, long[] fixedOffsets, long arena, PackingProblem free) {
    return packInto(
        fixed, ImmutableLongArray.copyOf(fixedOffsets), arena, free, PackOptions.DEFAULT);
  }

  /** Like {@link #packInto(PackingProblem, long[], long, PackingProblem)}. */
  public static Packing packInto(
      PackingProblem fixed,
      ImmutableLongArray fixedOffsets,
      long arena,
      PackingProblem free,
      PackOptions options) {
    if (fixedOffsets.length() != fixed.count()) {
      throw new IllegalArgumentException(
          fixed.count() + " fixed buffers have " + fixedOffsets.length() + " offsets");
    }
    for (int i = 0; i < fixed.count(); i++) {
      long offset = fixedOffsets.get(i);
      if (offset < 0 || offset > arena - fixed.item(i).size()) {
        throw new IllegalArgumentException(
            "fixed buffer " + i + " at " + offset + " leaves the arena of " + arena + " bytes");
      }
    }
    if (arena == 0 || free.count() == 0) {
      return pack(free, options);
    }
    return new TwoArenas(fixed, fixedOffsets.toArray(), arena, free, options).solve();
  }
}
