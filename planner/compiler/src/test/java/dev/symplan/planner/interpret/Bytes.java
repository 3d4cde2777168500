package dev.symplan.planner.interpret;

import java.util.List;
import java.util.TreeMap;

/** Memory: what each byte holds. */
final class Bytes {
  private static final long GARBAGE = 0x6761726261676521L;

  private final long size;
  private final TreeMap<Long, Piece> pieces = new TreeMap<>();

  Bytes(long size) {
    this.size = size;
    spoil();
  }

  /** Leaves nothing of what is there. */
  void spoil() {
    pieces.clear();
    if (size > 0) {
      pieces.put(0L, new Piece(GARBAGE, 0, size));
    }
  }

  private void check(long begin, long length) {
    Unsafe.require(
        begin >= 0 && begin + length <= size, "bytes %s to %s of %s", begin, begin + length, size);
  }

  /** Adds what some bytes hold to what was read before them. */
  void read(long begin, long length, List<Piece> found) {
    check(begin, length);
    if (length == 0) {
      return;
    }
    var first = pieces.floorEntry(begin);
    long inside = begin - first.getKey();
    long count = Math.min(first.getValue().length() - inside, length);
    Piece.append(found, first.getValue().part(inside, count));
    long at = begin + count;
    if (count < length) {
      for (var next : pieces.tailMap(at).values()) {
        count = Math.min(next.length(), begin + length - at);
        Piece.append(found, next.part(0, count));
        at += count;
        if (at == begin + length) {
          break;
        }
      }
    }
  }

  void write(long begin, Piece piece) {
    write(begin, List.of(piece));
  }

  void write(long begin, List<Piece> all) {
    long length = Piece.length(all);
    check(begin, length);
    if (length > 0) {
      cut(begin);
      cut(begin + length);
      pieces.subMap(begin, begin + length).clear();
      long at = begin;
      for (var piece : all) {
        if (piece.length() > 0) {
          at = put(at, piece);
        }
      }
    }
  }

  /** One piece with the one before it, if it goes on there: runs of a tensor are many. */
  private long put(long at, Piece piece) {
    var before = pieces.lowerEntry(at);
    if (before != null && before.getValue().isFollowedBy(piece)) {
      pieces.put(before.getKey(), before.getValue().and(piece));
    } else {
      pieces.put(at, piece);
    }
    return at + piece.length();
  }

  private void cut(long at) {
    var entry = pieces.floorEntry(at);
    if (entry == null || entry.getKey() == at) {
      return;
    }
    var piece = entry.getValue();
    long inside = at - entry.getKey();
    if (inside < piece.length()) {
      pieces.put(entry.getKey(), piece.part(0, inside));
      pieces.put(at, piece.part(inside, piece.length() - inside));
    }
  }
}
