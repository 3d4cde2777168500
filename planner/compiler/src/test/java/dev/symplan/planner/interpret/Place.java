package dev.symplan.planner.interpret;

import dev.symplan.ir.TensorType;
import java.util.ArrayList;
import java.util.List;

/** Where a tensor is: another object for each tensor, which ops without a rule may move. */
final class Place {
  /** Tensors of more runs than these are known by samples where their layout may change. */
  private static final long MOST_RUNS = 1 << 16;

  private static final int SAMPLES = 4096;

  Bytes space;

  /** Where the storage begins. */
  long origin;

  long begin;

  /** After the last byte that the tensor may use. */
  long end;

  boolean moved;

  Place(Bytes space, long origin, long begin, long end) {
    this.space = space;
    this.origin = origin;
    this.begin = begin;
    this.end = end;
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

  boolean isAt(Place other) {
    return space == other.space && begin == other.begin;
  }

  private void check(TensorType type) {
    Unsafe.require(
        type.storageBytes() == 0 || (begin >= origin && begin + type.storageBytes() <= end),
        "outside the buffer");
  }

  /**
   * {@return the elements in their order; one piece that stands for all where there are too many}
   */
  List<Piece> read(TensorType type) {
    check(type);
    var layout = Layout.ofElements(type);
    if (layout.count() > MOST_RUNS) {
      return List.of(new Piece(samples(type), 0, type.bytes()));
    }
    var pieces = new ArrayList<Piece>();
    layout.forEach(offset -> pieces.addAll(space.read(begin + offset, layout.run())));
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
    return space.read(begin + offset * item, item);
  }

  /** Writes the elements, in their order. */
  void write(TensorType type, List<Piece> elements) {
    check(type);
    var layout = Layout.ofElements(type);
    if (layout.count() > MOST_RUNS) {
      fill(type, Piece.mix(Piece.hash(elements), type.strides().hashCode()));
      return;
    }
    var cursor = new Piece.Cursor(elements);
    layout.forEach(offset -> space.write(begin + offset, cursor.take(layout.run())));
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
            space.write(begin + offset, new Piece(token, offset, count));
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
    layout.forEach(offset -> pieces.addAll(space.read(begin + offset, layout.run())));
    return Piece.hash(pieces);
  }

  boolean overlaps(TensorType type, Place other, TensorType otherType) {
    return space == other.space
        && begin < other.begin + otherType.storageBytes()
        && other.begin < begin + type.storageBytes();
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
