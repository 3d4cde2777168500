package dev.symplan.codegen.composite;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.Layouts;

/**
 * A tensor as a step sees it.
 *
 * @param type its elements with the step's dimensions, of one element where it is broadcast
 * @param copied whether its strides do not permit this view: an operand is copied first, a result
 *     afterwards, and {@code type} is contiguous
 */
public record Seen(Source source, TensorType type, boolean copied) {

  /**
   * {@return a tensor in another shape}
   *
   * @param type the tensor as it is
   * @param sizes of as many elements
   */
  static Seen of(Source source, TensorType type, ImmutableLongArray sizes) {
    return Layouts.viewStrides(type, sizes)
        .map(
            strides ->
                new Seen(
                    source, new TensorType(type.dtype(), sizes, strides, MemorySpace.ANY), false))
        .orElseGet(() -> new Seen(source, TensorType.contiguous(type.dtype(), sizes), true));
  }

  /**
   * {@return the real (0) or imaginary (1) parts of complex elements}
   *
   * @param type the elements, with the step's dimensions
   */
  static Seen part(Source source, TensorType type, int part) {
    var parts = type.parts();
    int last = type.rank();
    return new Seen(
        // Memory without elements has no second part.
        new Source.Part(source, type.numel() == 0 ? 0 : part),
        new TensorType(
            parts.dtype(), type.sizes(), parts.strides().subArray(0, last), MemorySpace.ANY),
        false);
  }

  Seen as(ImmutableLongArray sizes, ImmutableLongArray strides) {
    return new Seen(source, new TensorType(type.dtype(), sizes, strides, MemorySpace.ANY), copied);
  }

  /** {@return how far apart neighbours along a dimension are; 0 if it is broadcast} */
  public long stride(int dim) {
    return type.size(dim) == 1 ? 0 : type.stride(dim);
  }
}
