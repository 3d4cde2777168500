package dev.symplan.runtime.host;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Loops;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.LongStream;

/**
 * The elements {@code self[indices]} of NumPy's advanced indexing, next to those of a tensor of the
 * indexed shape: the shape that the indices broadcast to replaces the indexed dimensions where
 * these are neighbours, else at the front.
 */
final class IndexedElements {
  private final HostTensor self;
  private final ImmutableLongArray shape;
  private final long[] begins;
  private final List<Integer> rest = new ArrayList<>();
  private final int front;

  IndexedElements(HostTensor self, List<Optional<HostTensor>> indices) {
    this.self = self;
    var indexed = new ArrayList<Integer>();
    var common = ImmutableLongArray.of();
    for (int i = 0; i < self.type().rank(); i++) {
      if (i < indices.size() && indices.get(i).isPresent()) {
        indexed.add(i);
        common = Broadcasts.sizes(common, indices.get(i).get().type().sizes());
      } else {
        rest.add(i);
      }
    }
    shape = common;
    boolean adjacent =
        !indexed.isEmpty() && indexed.getLast() - indexed.getFirst() == indexed.size() - 1;
    front = adjacent ? indexed.getFirst() : 0;
    begins = new long[Math.toIntExact(shape.stream().reduce(1, (a, b) -> a * b))];
    for (int dim : indexed) {
      addOffsets(dim, Views.expand(indices.get(dim).orElseThrow(), shape));
    }
  }

  private void addOffsets(int dim, HostTensor index) {
    var sizes = shape.toArray();
    long size = self.type().size(dim);
    long step = self.type().stride(dim) * self.dtype().bytes();
    var chunk = new long[Loops.CHUNK];
    var next = new int[1];
    Loops.forEach(
        sizes,
        List.of(Loops.byteStrides(index.type(), sizes)),
        (offsets, steps, count) -> {
          Elements.load(index.memory(), offsets[0], steps[0], index.dtype(), chunk, count);
          for (int i = 0; i < count; i++) {
            begins[next[0]++] += wrap(chunk[i], size, dim) * step;
          }
        });
  }

  /** {@return the index counted from the front} */
  static long wrap(long index, long size, int dim) {
    if (index < -size || index >= size) {
      throw outOfRange(index, size, dim);
    }
    return index < 0 ? index + size : index;
  }

  /** {@return the index, which must not be negative} */
  static long check(long index, long size, int dim) {
    if (index < 0 || index >= size) {
      throw outOfRange(index, size, dim);
    }
    return index;
  }

  private static HostKernelException outOfRange(long index, long size, int dim) {
    return new HostKernelException(
        "index %s is out of range for dimension %s of size %s".formatted(index, dim, size));
  }

  /** The indices, with a tensor for each dimension of a mask, of where the mask is true. */
  static List<Optional<HostTensor>> withoutMasks(List<Optional<HostTensor>> indices) {
    var all = new ArrayList<Optional<HostTensor>>();
    for (var index : indices) {
      if (index.isPresent() && isMask(index.get().dtype())) {
        all.addAll(indicesOf(index.get()));
      } else {
        all.add(index);
      }
    }
    return all;
  }

  private static boolean isMask(DType dtype) {
    return dtype == DType.BOOL || dtype == DType.U8;
  }

  private static List<Optional<HostTensor>> indicesOf(HostTensor mask) {
    var flat = Views.flat(mask);
    var chosen =
        LongStream.range(0, flat.type().numel()).filter(i -> flat.getLong(i) != 0).toArray();
    var dims = new ArrayList<Optional<HostTensor>>();
    long step = flat.type().numel();
    for (long size : mask.type().sizes().asList()) {
      step = size == 0 ? 0 : step / size;
      var index = HostTensor.allocate(TensorType.contiguous(DType.I64, chosen.length));
      for (int i = 0; i < chosen.length; i++) {
        index.setLong(chosen[i] / step % size, i);
      }
      dims.add(Optional.of(index));
    }
    return dims;
  }

  /** The work on elements at equal distances in {@code self} and in the other tensor. */
  interface Move {
    void run(long offset, long step, long other, long otherStep, int count);
  }

  /**
   * Goes over all elements; where several are the same, in the order of the indices.
   *
   * @param other of the indexed shape
   */
  void forEach(HostTensor other, Move move) {
    int bytes = other.dtype().bytes();
    var type = other.type();
    int wide = shape.length();
    var strides = new long[wide];
    for (int i = 0; i < wide; i++) {
      strides[i] = type.stride(front + i) * bytes;
    }
    var others = new long[begins.length];
    var next = new int[1];
    Loops.forEach(
        shape.toArray(),
        List.of(strides),
        (offsets, steps, count) -> {
          for (int i = 0; i < count; i++) {
            others[next[0]++] = offsets[0] + i * steps[0];
          }
        });
    var sizes = new long[rest.size()];
    var own = new long[rest.size()];
    var theirs = new long[rest.size()];
    for (int i = 0; i < sizes.length; i++) {
      sizes[i] = self.type().size(rest.get(i));
      own[i] = self.type().stride(rest.get(i)) * self.dtype().bytes();
      theirs[i] = type.stride(i < front ? i : i + wide) * bytes;
    }
    Loops.forEach(
        sizes,
        List.of(own, theirs),
        (offsets, steps, count) -> {
          for (int b = 0; b < begins.length; b++) {
            move.run(begins[b] + offsets[0], steps[0], others[b] + offsets[1], steps[1], count);
          }
        });
  }

  /** Copies the elements to a tensor of the same element type. */
  void copyTo(HostTensor other) {
    int bytes = self.dtype().bytes();
    forEach(
        other,
        (offset, step, at, otherStep, count) ->
            copy(self.memory(), offset, step, other.memory(), at, otherStep, count, bytes));
  }

  /** Fills the elements from a tensor of the same element type. */
  void copyFrom(HostTensor other) {
    int bytes = self.dtype().bytes();
    forEach(
        other,
        (offset, step, at, otherStep, count) ->
            copy(other.memory(), at, otherStep, self.memory(), offset, step, count, bytes));
  }

  private static void copy(
      MemorySegment from,
      long at,
      long step,
      MemorySegment to,
      long target,
      long targetStep,
      int count,
      int bytes) {
    if (step == bytes && targetStep == bytes) {
      MemorySegment.copy(from, at, to, target, (long) count * bytes);
    } else {
      for (int i = 0; i < count; i++) {
        MemorySegment.copy(from, at + i * step, to, target + i * targetStep, bytes);
      }
    }
  }

  /** Adds a tensor to the elements. */
  void add(HostTensor other) {
    if (self.dtype().isFloat()) {
      var sum = new double[Loops.CHUNK];
      var summand = new double[Loops.CHUNK];
      forEach(
          other,
          (offset, step, at, otherStep, count) -> {
            Elements.load(self.memory(), offset, step, self.dtype(), sum, count);
            Elements.load(other.memory(), at, otherStep, other.dtype(), summand, count);
            for (int i = 0; i < count; i++) {
              sum[i] += summand[i];
            }
            Elements.store(sum, count, self.memory(), offset, step, self.dtype());
          });
    } else {
      var sum = new long[Loops.CHUNK];
      var summand = new long[Loops.CHUNK];
      forEach(
          other,
          (offset, step, at, otherStep, count) -> {
            Elements.load(self.memory(), offset, step, self.dtype(), sum, count);
            Elements.load(other.memory(), at, otherStep, other.dtype(), summand, count);
            for (int i = 0; i < count; i++) {
              sum[i] += summand[i];
            }
            Elements.store(sum, count, self.memory(), offset, step, self.dtype());
          });
    }
  }

  /** {@return the indexed shape} */
  ImmutableLongArray sizes() {
    var sizes = new ArrayList<Long>();
    rest.forEach(dim -> sizes.add(self.type().size(dim)));
    sizes.addAll(front, shape.asList());
    return ImmutableLongArray.copyOf(sizes);
  }

  /** A tensor that many summands are added to: 16-bit floats are kept in f32 meanwhile. */
  static HostTensor sumOf(HostTensor tensor) {
    if (tensor.dtype().isFloat() && tensor.dtype().bytes() < 4) {
      return tensor.copyAs(tensor.type().contiguous().withDType(DType.F32));
    }
    return tensor;
  }
}
