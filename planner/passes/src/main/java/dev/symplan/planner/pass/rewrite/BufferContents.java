package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * The contents that copies have written into a buffer so far.
 *
 * <p>Places are counted in elements.
 */
final class BufferContents {
  /**
   * Elements of what a copy wrote.
   *
   * @param start where they lie in the buffer
   * @param copy which copy that was
   * @param copy the op that copied
   * @param from the first of them in what it copied
   */
  record Piece(long start, long size, int copy, long from) {
    long end() {
      return start + size;
    }

    private Piece between(long first, long behind) {
      long begin = Math.max(start, first);
      return new Piece(begin, Math.min(end(), behind) - begin, copy, from + begin - start);
    }
  }

  /** From the first on; none overlap. */
  private List<Piece> pieces = new ArrayList<>();

  private int version;

  /** Takes in that a copy wrote some elements. */
  void write(long start, long size, int copy) {
    var kept = new ArrayList<Piece>();
    for (var piece : pieces) {
      var before = piece.between(0, start);
      var after = piece.between(start + size, Long.MAX_VALUE);
      for (var rest : List.of(before, after)) {
        if (rest.size() > 0) {
          kept.add(rest);
        }
      }
    }
    kept.add(new Piece(start, size, copy, 0));
    kept.sort(Comparator.comparingLong(Piece::start));
    pieces = kept;
    version++;
  }

  /** {@return how often something was written} */
  int version() {
    return version;
  }

  /**
   * {@return the pieces of which some elements consist, in their order; none if one was never
   * written}
   */
  ImmutableList<Piece> read(long start, long size) {
    var found = ImmutableList.<Piece>builder();
    long next = start;
    for (var piece : pieces) {
      var part = piece.between(start, start + size);
      if (part.size() > 0 && part.start() == next) {
        found.add(part);
        next = part.end();
      }
    }
    return next == start + size ? found.build() : ImmutableList.of();
  }
}
