package dev.symplan.ir.op;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.NoneType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import java.util.Optional;
import java.util.function.UnaryOperator;

/**
 * One result of an op, as its rule gives it.
 *
 * @param view where the result's elements are, if they belong to another value
 * @param unspecified whether the op leaves the elements undefined, as {@code empty} does
 */
public record OpResult(Type type, Optional<View> view, boolean unspecified) {

  /**
   * A result that has no storage of its own.
   *
   * @param of the value whose storage it shares
   * @param offset where its first element lies, in elements of {@code of}: after the first element
   *     of {@code of}, or of its storage
   * @param fromStorage whether the offset counts from the start of the storage
   */
  public record View(Value of, long offset, boolean fromStorage) {

    /** A view whose offset counts from the first element of {@code of}. */
    public View(Value of, long offset) {
      this(of, offset, false);
    }
  }

  /**
   * {@return whether an annotation may give the result this type} The annotation may ask for any
   * memory space. Unless the result is a view, it may ask for any layout.
   */
  public boolean allows(Type said) {
    if (type == said) {
      return true;
    }
    if (type instanceof TensorType own && said instanceof TensorType other) {
      return own.dtype() == other.dtype()
          && own.sizes().equals(other.sizes())
          && (view.isEmpty() || !stridesDiffer(own, other));
    }
    return type instanceof NoneType || type.equals(said);
  }

  /** Strides of dimensions of size 1 or 0 mean nothing, and PyTorch is free with them. */
  private static boolean stridesDiffer(TensorType a, TensorType b) {
    if (a.numel() == 0) {
      return false;
    }
    for (int i = 0; i < a.rank(); i++) {
      if (a.size(i) > 1 && a.stride(i) != b.stride(i)) {
        return true;
      }
    }
    return false;
  }

  /** {@return the same result of another type} */
  public OpResult withType(Type other) {
    return other == type ? this : new OpResult(other, view, unspecified);
  }

  /** {@return the same result of another value, which has the same type} */
  public OpResult map(UnaryOperator<Value> change) {
    return view.isEmpty()
        ? this
        : new OpResult(
            type,
            view.map(v -> new View(change.apply(v.of()), v.offset(), v.fromStorage())),
            unspecified);
  }

  /** A result in storage of its own. */
  public static OpResult fresh(Type type) {
    return new OpResult(type, Optional.empty(), false);
  }

  /** A row-major result in storage of its own. */
  public static OpResult fresh(DType dtype, ImmutableLongArray sizes) {
    return fresh(TensorType.contiguous(dtype, sizes));
  }

  /** A result that is {@code of}'s storage, seen otherwise; it has {@code of}'s element type. */
  public static OpResult view(
      Value of, ImmutableLongArray sizes, ImmutableLongArray strides, long offset) {
    var type = new TensorType(of.tensor().dtype(), sizes, strides, MemorySpace.ANY);
    return new OpResult(type, Optional.of(new View(of, offset)), false);
  }

  /** A result in storage of its own that the op does not write. */
  public static OpResult unspecified(Type type) {
    return new OpResult(type, Optional.empty(), true);
  }

  /** A result that nothing can read. */
  public static OpResult none() {
    return fresh(NoneType.NONE);
  }
}
