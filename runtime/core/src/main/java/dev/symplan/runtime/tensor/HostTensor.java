package dev.symplan.runtime.tensor;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * A tensor in host memory.
 *
 * @param memory from the first element on, at least as long as the type's storage
 */
public record HostTensor(MemorySegment memory, TensorType type) {

  /** The alignment of allocations, in bytes. */
  private static final long ALIGNMENT = 64;

  public HostTensor {
    if (memory.byteSize() < type.storageBytes()) {
      throw new IllegalArgumentException(
          "%s bytes of memory for %s, which takes %s"
              .formatted(memory.byteSize(), type, type.storageBytes()));
    }
  }

  /** A tensor of zeros in memory of {@code arena}'s. */
  public static HostTensor allocate(Arena arena, TensorType type) {
    return new HostTensor(arena.allocate(Math.max(1, type.storageBytes()), ALIGNMENT), type);
  }

  /** A tensor of zeros in memory that the garbage collector frees. */
  public static HostTensor allocate(TensorType type) {
    return allocate(Arena.ofAuto(), type);
  }

  public DType dtype() {
    return type.dtype();
  }

  /** {@return the same memory seen as another type} */
  public HostTensor as(TensorType other) {
    return new HostTensor(memory, other);
  }

  /**
   * {@return where an element is, in bytes from the first one}
   *
   * @param index one for each dimension; none, where the tensor has one element
   * @throws IllegalArgumentException when it has fewer, or more
   * @throws IndexOutOfBoundsException when no element has the index
   */
  public long offset(long... index) {
    if (index.length != type.rank() && !(index.length == 0 && type.numel() == 1)) {
      throw new IllegalArgumentException("%s indices for %s".formatted(index.length, type));
    }
    long offset = 0;
    for (int i = 0; i < index.length; i++) {
      offset += Objects.checkIndex(index[i], type.size(i)) * type.stride(i);
    }
    return offset * type.dtype().bytes();
  }

  /** {@return an element of any type as a double} */
  public double get(long... index) {
    return Elements.getDouble(memory, offset(index), dtype());
  }

  /** {@return an element of an integer or bool tensor} */
  public long getLong(long... index) {
    return Elements.getLong(memory, offset(index), dtype());
  }

  /** Sets an element, rounded to the tensor's type. */
  public void set(double value, long... index) {
    Elements.setDouble(memory, offset(index), dtype(), value);
  }

  /** Sets an element of an integer or bool tensor. */
  public void setLong(long value, long... index) {
    Elements.setLong(memory, offset(index), dtype(), value);
  }

  /**
   * Copies another tensor's elements, converted to this one's type.
   *
   * @throws IllegalArgumentException when the shapes differ
   */
  public void copyFrom(HostTensor source) {
    if (!source.type.sizes().equals(type.sizes())) {
      throw new IllegalArgumentException("cannot copy %s into %s".formatted(source.type, type));
    }
    if (source.dtype() == dtype()
        && type.isDense()
        && source.type.strides().equals(type.strides())) {
      MemorySegment.copy(source.memory, 0, memory, 0, type.storageBytes());
    } else if (source.dtype() != dtype() && (source.isComplex() || isComplex())) {
      copyParts(source);
    } else {
      Loops.copy(source, this);
    }
  }

  private boolean isComplex() {
    return dtype().kind() == DType.Kind.COMPLEX;
  }

  /** Complex numbers are their real parts in real tensors, and what is not 0 is true in bools. */
  private void copyParts(HostTensor source) {
    var real = isComplex() ? part(0) : this;
    real.copyFrom(source.isComplex() ? source.part(0) : source);
    if (isComplex()) {
      part(1).copyFrom(source.isComplex() ? source.part(1) : allocate(source.type.contiguous()));
    } else if (dtype() == DType.BOOL) {
      var truth = copyAs(type.contiguous());
      var imaginary = source.part(1).copyAs(type.contiguous());
      for (long i = 0; i < type.numel(); i++) {
        byte either = (byte) (truth.memory.get(JAVA_BYTE, i) | imaginary.memory.get(JAVA_BYTE, i));
        truth.memory.set(JAVA_BYTE, i, either);
      }
      copyFrom(truth);
    }
  }

  /** {@return the real (0) or imaginary (1) parts of complex elements} */
  public HostTensor part(int part) {
    var parts = type.parts();
    int last = type.rank();
    long bytes = type.numel() == 0 ? 0 : (long) part * parts.dtype().bytes();
    return new HostTensor(
        memory.asSlice(bytes),
        new TensorType(
            parts.dtype(), type.sizes(), parts.strides().subArray(0, last), MemorySpace.ANY));
  }

  /**
   * {@return a copy, its elements converted}
   *
   * @throws IllegalArgumentException when the type has another shape
   */
  public HostTensor copyAs(TensorType other) {
    var copy = allocate(other);
    copy.copyFrom(this);
    return copy;
  }

  /** {@return this tensor, or a row-major copy where it is not row-major} */
  public HostTensor contiguous() {
    return type.isContiguous() ? as(type.contiguous()) : copyAs(type.contiguous());
  }
}
