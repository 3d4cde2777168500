package dev.symplan.runtime.host;

import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import org.bytedeco.javacpp.DoublePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.openblas.global.openblas_nolapack;

/**
 * Products of two matrices, by OpenBLAS. Narrower floats are multiplied in f32 and rounded once, as
 * GPUs do; integers are multiplied here.
 */
final class MatrixProduct {
  private MatrixProduct() {}

  /** Loads the library once; ranks are threads already, so it uses none of its own. */
  private static final class Blas {
    static {
      openblas_nolapack.blas_set_num_threads(1);
    }

    static void load() {}
  }

  /** {@return the type that products are summed in} */
  static DType wide(DType dtype) {
    return dtype.isFloat() && dtype.bytes() < DType.F32.bytes() ? DType.F32 : dtype;
  }

  /** {@return memory for a product that is not rounded yet} */
  static HostTensor wide(TensorType type) {
    return HostTensor.allocate(type.contiguous().withDType(wide(type.dtype())));
  }

  static void batches(HostTensor left, HostTensor right, HostTensor result) {
    for (long i = 0; i < result.type().size(0); i++) {
      multiply(Views.select(left, 0, i), Views.select(right, 0, i), Views.select(result, 0, i));
    }
  }

  /** The operands are summed in one type, and the result is of any. */
  static void multiply(HostTensor left, HostTensor right, HostTensor result) {
    checkSizes(left.type(), right.type(), result.type());
    var dtype = wide(left.dtype());
    if (wide(right.dtype()) != dtype) {
      throw new IllegalArgumentException(
          "the right operand of a product must be %s, like the left one, not %s"
              .formatted(left.dtype().shortName(), right.dtype().shortName()));
    }
    if (result.type().numel() == 0) {
      return;
    }
    if (!dtype.isFloat()) {
      integers(left, right, result);
    } else if (left.type().size(1) == 0) {
      CreationKernels.fill(result, 0);
    } else if (result.dtype() == dtype && isRowMajor(result.type())) {
      blas(as(left, dtype), as(right, dtype), result);
    } else {
      var product = HostTensor.allocate(result.type().contiguous().withDType(dtype));
      blas(as(left, dtype), as(right, dtype), product);
      result.copyFrom(product);
    }
  }

  private static void checkSizes(TensorType left, TensorType right, TensorType result) {
    boolean matrices = left.rank() == 2 && right.rank() == 2 && result.rank() == 2;
    if (!matrices
        || left.size(1) != right.size(0)
        || left.size(0) != result.size(0)
        || right.size(1) != result.size(1)) {
      throw new IllegalArgumentException(
          "%s times %s does not give %s".formatted(left, right, result));
    }
  }

  private static HostTensor as(HostTensor tensor, DType dtype) {
    return tensor.dtype() == dtype
        ? tensor
        : tensor.copyAs(tensor.type().contiguous().withDType(dtype));
  }

  private static boolean isRowMajor(TensorType type) {
    return (type.stride(1) == 1 || type.size(1) == 1)
        && (type.size(0) == 1 || isLeading(type.stride(0), type.size(1)));
  }

  private static boolean isColumnMajor(TensorType type) {
    return (type.stride(0) == 1 || type.size(0) == 1)
        && (type.size(1) == 1 || isLeading(type.stride(1), type.size(0)));
  }

  /** Whether BLAS takes a distance of rows, or of columns, of so many elements. */
  private static boolean isLeading(long distance, long elements) {
    return distance >= elements && distance <= Integer.MAX_VALUE;
  }

  /**
   * A matrix as BLAS has it, by its address: an extent outside the memory is refused here, as
   * nothing checks it behind the address.
   *
   * @param leading elements from one row to the next, or from one column where it is transposed
   */
  private record Matrix(HostTensor tensor, boolean transposed, int leading) {
    static Matrix of(HostTensor tensor, DType dtype) {
      var type = tensor.type();
      boolean rows = isRowMajor(type);
      if (!rows && !isColumnMajor(type)) {
        return of(tensor.copyAs(type.contiguous()), dtype);
      }
      long near = rows ? type.size(1) : type.size(0);
      long far = rows ? type.size(0) : type.size(1);
      long leading = far > 1 ? (rows ? type.stride(0) : type.stride(1)) : near;
      if (near > Integer.MAX_VALUE || far > Integer.MAX_VALUE) {
        throw new UnsupportedOperationException(
            "the host backend multiplies matrices of up to %s rows and columns, not %s"
                .formatted(Integer.MAX_VALUE, type));
      }
      long bytes = ((far - 1) * leading + near) * dtype.bytes();
      boolean inside = tensor.memory().isNative() && bytes <= tensor.memory().byteSize();
      if (type.dtype() != dtype || !inside) {
        throw new IllegalArgumentException(
            "a product of %s reaches %s bytes into %s".formatted(dtype.shortName(), bytes, tensor));
      }
      return new Matrix(tensor, !rows, Math.toIntExact(leading));
    }

    int transposition() {
      return transposed ? openblas_nolapack.CblasTrans : openblas_nolapack.CblasNoTrans;
    }

    MemorySegment memory() {
      return tensor.memory();
    }
  }

  private static void blas(HostTensor left, HostTensor right, HostTensor result) {
    Blas.load();
    boolean single = result.dtype() == DType.F32;
    var dtype = single ? DType.F32 : DType.F64;
    var a = Matrix.of(left, dtype);
    var b = Matrix.of(right, dtype);
    var c = Matrix.of(result, dtype);
    int m = Math.toIntExact(result.type().size(0));
    int n = Math.toIntExact(result.type().size(1));
    int k = Math.toIntExact(left.type().size(1));
    try {
      if (single) {
        openblas_nolapack.cblas_sgemm(
            openblas_nolapack.CblasRowMajor,
            a.transposition(),
            b.transposition(),
            m,
            n,
            k,
            1f,
            new Floats(a.memory()),
            a.leading(),
            new Floats(b.memory()),
            b.leading(),
            0f,
            new Floats(c.memory()),
            c.leading());
      } else {
        openblas_nolapack.cblas_dgemm(
            openblas_nolapack.CblasRowMajor,
            a.transposition(),
            b.transposition(),
            m,
            n,
            k,
            1,
            new Doubles(a.memory()),
            a.leading(),
            new Doubles(b.memory()),
            b.leading(),
            0,
            new Doubles(c.memory()),
            c.leading());
      }
    } finally {
      // The collector knows nothing of what lies behind addresses.
      Reference.reachabilityFence(a);
      Reference.reachabilityFence(b);
      Reference.reachabilityFence(c);
    }
  }

  private static void integers(HostTensor left, HostTensor right, HostTensor result) {
    long inner = left.type().size(1);
    for (long i = 0; i < result.type().size(0); i++) {
      for (long j = 0; j < result.type().size(1); j++) {
        long sum = 0;
        for (long k = 0; k < inner; k++) {
          sum += left.getLong(i, k) * right.getLong(k, j);
        }
        result.setLong(sum, i, j);
      }
    }
  }

  /** A pointer to memory that JavaCPP does not own. */
  private static final class Floats extends FloatPointer {
    Floats(MemorySegment memory) {
      super((Pointer) null);
      address = memory.address();
    }
  }

  /** A pointer to memory that JavaCPP does not own. */
  private static final class Doubles extends DoublePointer {
    Doubles(MemorySegment memory) {
      super((Pointer) null);
      address = memory.address();
    }
  }
}
