package dev.symplan.planner.interpret;

import dev.symplan.ir.TensorType;
import java.util.ArrayList;
import java.util.List;

/** Where a tensor is: another object for each tensor, which ops without a rule may move. */
final class Place {
  /** Tensors of more runs than these are known by samples where their layout may change. */
  private static final long MAX_RUNS = 1 << 16;

  private static final int SAMPLES = 4096;

  Bytes space;

  /** Where the storage begins. */
  long origin;

  long begin;

  /** After the last byte that the tensor may use. */
  long end;

  boolean moved;

  /** Bytes that lie side by side, and from their beginning to that of the next ones. */
  final long row;

  private final long pitch;

  Place(Bytes space, long origin, long begin, long end) {
    this(space, origin, begin, end, Long.MAX_VALUE, Long.MAX_VALUE);
  }

  /** One in whose memory rows of others lie between those of the tensor. */
  Place(Bytes space, long origin, long begin, long end, long row, long pitch) {
    this.space = space;
    this.origin = origin;
    this.begin = begin;
    this.end = end;
    this.row = row;
    this.pitch = pitch;
  }

  Place copy() {
    return new Place(space, origin, begin, end, row, pitch);
  }

  /** {@return the place of a view} */
  Place at(long newBegin) {
    return new Place(space, origin, newBegin, end);
  }

  void move(Place other, long offset) {
    space = other.space;
    origin = other.origin;
    begin = other.begin + offset;
    end = other.end;
    moved = true;
  }

  /** {@return whether this is so many bytes of each row of another place} */
  boolean isRows(Place whole, long offset, long bytes, long distance) {
    return space == whole.space
        && begin == whole.begin + offset
        && row == bytes
        && pitch == distance
        && whole.row == Long.MAX_VALUE;
  }

  boolean isAt(Place other) {
    return space == other.space && begin == other.begin;
  }

  /** {@return from the first byte of a tensor to after its last one} */
  private long extent(TensorType type) {
    long last = type.storageBytes() - 1;
    return last < 0 ? 0 : inRows(last) + 1;
  }

  private long inRows(long offset) {
    Unsafe.require(row > 0, "rows of no bytes");
    return offset / row * pitch + offset % row;
  }

  private void check(TensorType type) {
    Unsafe.require(
        type.storageBytes() == 0 || (begin >= origin && begin + extent(type) <= end),
        "outside the buffer");
  }

  /** {@return bytes as they would lie without what is between the rows} */
  List<Piece> bytes(long offset, long count) {
    var pieces = new ArrayList<Piece>();
    read(offset, count, pieces);
    return pieces;
  }

  private void read(long offset, long count, List<Piece> into) {
    if (row == Long.MAX_VALUE) {
      space.read(begin + offset, count, into);
      return;
    }
    for (long at = offset; at < offset + count; ) {
      long step = Math.min(row - at % row, offset + count - at);
      space.read(begin + inRows(at), step, into);
      at += step;
    }
  }

  /** {@return whether as many bytes as these lie in the buffer} */
  boolean holds(long bytes) {
    return bytes == 0 || begin + inRows(bytes - 1) < end;
  }

  /** Writes bytes as they would lie without what is between the rows. */
  void put(long offset, List<Piece> pieces) {
    if (row == Long.MAX_VALUE) {
      space.write(begin + offset, pieces);
      return;
    }
    var cursor = new Piece.Cursor(pieces);
    long end = offset + Piece.length(pieces);
    for (long at = offset; at < end; ) {
      long step = Math.min(row - at % row, end - at);
      space.write(begin + inRows(at), cursor.take(step));
      at += step;
    }
  }

  /**
   * {@return the elements in their order; one piece that stands for all where there are too many}
   */
  List<Piece> read(TensorType type) {
    check(type);
    var layout = Layout.ofElements(type);
    if (layout.count() > MAX_RUNS) {
      return List.of(new Piece(samples(type), 0, type.bytes()));
    }
    var pieces = new ArrayList<Piece>();
    layout.forEach(offset -> read(offset, layout.run(), pieces));
    return pieces;
  }

  private long samples(TensorType type) {
    long count = type.numel();
    long hash = count;
    for (int s = 0; s < SAMPLES; s++) {
      long element = count * s / SAMPLES;
      element = s == SAMPLES - 1 ? count - 1 : element;
      hash = Piece.mix(hash, Piece.hash(element(type, element)));
    }
    return hash;
  }

  /** {@return one element} */
  List<Piece> element(TensorType type, long index) {
    long rest = index;
    long offset = 0;
    for (int d = type.rank() - 1; d >= 0; d--) {
      offset += rest % type.size(d) * type.stride(d);
      rest /= type.size(d);
    }
    int item = type.dtype().bytes();
    return bytes(offset * item, item);
  }

  /** Writes the elements, in their order. */
  void write(TensorType type, List<Piece> elements) {
    check(type);
    var layout = Layout.ofElements(type);
    if (layout.count() > MAX_RUNS) {
      fill(type, Piece.mix(Piece.hash(elements), type.strides().hashCode()));
      return;
    }
    var cursor = new Piece.Cursor(elements);
    layout.forEach(offset -> put(offset, cursor.take(layout.run())));
  }

  /** Writes something new, into a part of the tensor where that is wanted. */
  void fill(TensorType type, long token, double part) {
    check(type);
    var layout = Layout.ofMemory(type);
    long limit = (long) (type.storageBytes() * part);
    layout.forEach(
        offset -> {
          if (offset < limit) {
            long count = Math.min(layout.run(), limit - offset);
            put(offset, List.of(new Piece(token, offset, count)));
          }
        });
  }

  void fill(TensorType type, long token) {
    fill(type, token, 1);
  }

  /** {@return a number for all bytes of the tensor} Only tensors of one layout can be compared. */
  long exact(TensorType type) {
    check(type);
    var pieces = new ArrayList<Piece>();
    var layout = Layout.ofMemory(type);
    layout.forEach(offset -> read(offset, layout.run(), pieces));
    return Piece.hash(pieces);
  }

  boolean overlaps(TensorType type, Place other, TensorType otherType) {
    return space == other.space
        && begin < other.begin + other.extent(otherType)
        && other.begin < begin + extent(type);
  }

  /** {@return whether two tensors are the same elements at the same addresses} */
  boolean isSame(TensorType type, Place other, TensorType otherType) {
    return isAt(other)
        && type.sizes().equals(otherType.sizes())
        && type.strides().equals(otherType.strides())
        && type.dtype().bytes() == otherType.dtype().bytes()
        && type.isDense();
  }
}
