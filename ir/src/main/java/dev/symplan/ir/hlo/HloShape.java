package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import java.util.stream.Stream;

/** The type of an instruction. */
public sealed interface HloShape {

  /**
   * An array.
   *
   * @param element XLA's name of the element type
   * @param tensor the memory that it takes
   * @param exact whether the elements are those of {@code tensor}; otherwise, that has the right
   *     size only, as elements of less than a byte and tiles do not exist in it
   * @param minorToMajor the dimensions, innermost first
   * @param space XLA's memory space: 0 is the device's, 1 and 7 are for collectives, 5 the host's
   */
  record Array(
      String element, TensorType tensor, boolean exact, ImmutableIntArray minorToMajor, int space)
      implements HloShape {

    /** XLA's memory space of the host. */
    static final int HOST = 5;

    DType dtype() {
      return tensor.dtype();
    }
  }

  /** Several values as one. */
  record Tuple(ImmutableList<HloShape> parts) implements HloShape {}

  /** A value without memory: a token, or something opaque. */
  record Token(String kind) implements HloShape {}

  /** {@return the arrays in it, left to right} */
  default Stream<Array> arrays() {
    return switch (this) {
      case Array array -> Stream.of(array);
      case Tuple(ImmutableList<HloShape> parts) -> parts.stream().flatMap(HloShape::arrays);
      case Token _ -> Stream.empty();
    };
  }

  /** {@return the strides of a layout} */
  static ImmutableLongArray strides(ImmutableLongArray sizes, ImmutableIntArray minorToMajor) {
    var strides = new long[sizes.length()];
    long next = 1;
    for (int i = 0; i < minorToMajor.length(); i++) {
      int dim = minorToMajor.get(i);
      strides[dim] = next;
      next = Math.multiplyExact(next, Math.max(1, sizes.get(dim)));
    }
    return ImmutableLongArray.copyOf(strides);
  }

  /** {@return the type of an element of an array} */
  static Array number(Array array) {
    return new Array(
        array.element(),
        TensorType.contiguous(array.dtype()),
        array.exact(),
        ImmutableIntArray.of(),
        0);
  }

  /** {@return memory of some bytes} */
  static TensorType bytes(long count) {
    return new TensorType(
        DType.U8, ImmutableLongArray.of(count), ImmutableLongArray.of(1), MemorySpace.ANY);
  }
}
