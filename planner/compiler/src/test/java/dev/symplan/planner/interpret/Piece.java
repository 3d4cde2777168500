package dev.symplan.planner.interpret;

import dev.symplan.ir.DType;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.LongStream;

/**
 * Consecutive bytes of what one op computed.
 *
 * @param token the computation that gave it
 * @param from the first byte's position in it; may be negative, as only differences count
 */
record Piece(long token, long from, long length) {

  /** {@return some of the bytes, the first of them {@code begin} after the first of all} */
  Piece part(long begin, long count) {
    return new Piece(token, from + begin, count);
  }

  /** {@return whether the bytes of another piece are the next ones of the same} */
  boolean isFollowedBy(Piece next) {
    return next.token == token && next.from == from + length;
  }

  /** {@return one piece with those that follow it} */
  Piece and(Piece next) {
    return new Piece(token, from, length + next.length);
  }

  /** Adds a piece, as one with the last where it goes on there. */
  static void append(List<Piece> pieces, Piece piece) {
    if (!pieces.isEmpty() && pieces.getLast().isFollowedBy(piece)) {
      pieces.set(pieces.size() - 1, pieces.getLast().and(piece));
    } else {
      pieces.add(piece);
    }
  }

  /** {@return elements that are all the same, in whatever order they lie} */
  static List<Piece> zeros(long count, int width) {
    return Collections.nCopies((int) count, new Piece(mix(0, "zeros"), 0, width));
  }

  static long mix(long a, long b) {
    long z = (a ^ Long.rotateLeft(b, 31)) * 0x9E3779B97F4A7C15L + b;
    z = (z ^ (z >>> 29)) * 0xBF58476D1CE4E5B9L;
    return z ^ (z >>> 32);
  }

  static long mix(long a, String text) {
    long hash = a;
    for (int i = 0; i < text.length(); i++) {
      hash = mix(hash, text.charAt(i));
    }
    return hash;
  }

  /** {@return a number for the bytes, however they are cut into pieces} */
  static long hash(List<Piece> pieces) {
    long hash = 17;
    for (int i = 0; i < pieces.size(); ) {
      var first = pieces.get(i++);
      long length = first.length;
      while (i < pieces.size()
          && pieces.get(i).token == first.token
          && pieces.get(i).from == first.from + length) {
        length += pieces.get(i++).length;
      }
      if (length > 0) {
        hash = mix(mix(mix(hash, first.token), first.from), length);
      }
    }
    return hash;
  }

  static long length(List<Piece> pieces) {
    long length = 0;
    for (var piece : pieces) {
      length += piece.length;
    }
    return length;
  }

  /** {@return some of the bytes} */
  static List<Piece> part(List<Piece> pieces, long begin, long length) {
    var cursor = new Cursor(pieces);
    cursor.take(begin);
    return cursor.take(length);
  }

  /** {@return the result of each byte and those at its position in the other lists} */
  static List<Piece> combine(long key, List<List<Piece>> lists) {
    if (lists.size() == 1) {
      return lists.getFirst();
    }
    var cursors = lists.stream().map(Cursor::new).toList();
    var combined = new ArrayList<Piece>();
    long rest = length(lists.getFirst());
    while (rest > 0) {
      long step =
          LongStream.concat(LongStream.of(rest), cursors.stream().mapToLong(Cursor::toNextCut))
              .min()
              .orElseThrow();
      long token = key;
      long from = 0;
      for (int i = 0; i < cursors.size(); i++) {
        var piece = cursors.get(i).take(step).getFirst();
        from = i == 0 ? piece.from : from;
        // Where the cuts are must not matter, so that positions count from the first list's.
        token = mix(mix(token, piece.token), piece.from - from);
      }
      combined.add(new Piece(token, from, step));
      rest -= step;
    }
    return combined;
  }

  /** {@return elements of another type, each made of one element} */
  static List<Piece> converted(List<Piece> pieces, DType from, DType to) {
    if (from == to) {
      return pieces;
    }
    int width = from.bytes();
    var cursor = new Cursor(pieces);
    var converted = new ArrayList<Piece>();
    long rest = length(pieces);
    while (rest > 0) {
      long whole = Math.min(rest, cursor.toNextCut()) / width * width;
      // Only an element that is cut is made of several pieces.
      var taken = cursor.take(whole > 0 ? whole : width);
      long token = mix(0, to.shortName());
      for (var piece : taken) {
        token =
            mix(mix(token, piece.token), whole > 0 ? Math.floorMod(piece.from, width) : piece.from);
      }
      long first = whole > 0 ? Math.floorDiv(taken.getFirst().from, width) : 0;
      long elements = whole > 0 ? whole / width : 1;
      converted.add(new Piece(token, first * to.bytes(), elements * to.bytes()));
      rest -= elements * width;
    }
    return converted;
  }

  /** Takes pieces from the front of a list. */
  static final class Cursor {
    private final List<Piece> pieces;
    private int index;
    private long taken;

    Cursor(List<Piece> pieces) {
      this.pieces = pieces.stream().filter(piece -> piece.length > 0).toList();
    }

    long toNextCut() {
      return index < pieces.size() ? pieces.get(index).length - taken : Long.MAX_VALUE;
    }

    List<Piece> take(long length) {
      var result = new ArrayList<Piece>();
      long rest = length;
      while (rest > 0) {
        if (index == pieces.size()) {
          throw new Unsafe("%s bytes are missing".formatted(rest));
        }
        long step = Math.min(rest, toNextCut());
        result.add(pieces.get(index).part(taken, step));
        taken += step;
        rest -= step;
        if (taken == pieces.get(index).length) {
          index++;
          taken = 0;
        }
      }
      return result;
    }
  }
}
