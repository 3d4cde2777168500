package dev.symplan.runtime.host;

import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.MemorySegment;
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

  /** The operands are of one type, the result is of any. */
  static void multiply(HostTensor left, HostTensor right, HostTensor result) {
    if (result.type().numel() == 0) {
      return;
    }
    var dtype = left.dtype();
    if (!dtype.isFloat()) {
      integers(left, right, result);
    } else if (dtype == DType.F32 || dtype == DType.F64) {
      blasInto(left, right, result);
    } else {
      blasInto(widened(left), widened(right), result);
    }
  }

  private static void blasInto(HostTensor left, HostTensor right, HostTensor result) {
    if (result.dtype() == left.dtype() && isRowMajor(result)) {
      blas(left, right, result);
    } else {
      var product = HostTensor.allocate(result.type().contiguous().withDType(left.dtype()));
      blas(left, right, product);
      result.copyFrom(product);
    }
  }

  private static HostTensor widened(HostTensor tensor) {
    return tensor.copyAs(tensor.type().contiguous().withDType(DType.F32));
  }

  private static boolean isRowMajor(HostTensor tensor) {
    var type = tensor.type();
    return (type.stride(1) == 1 || type.size(1) == 1)
        && (type.stride(0) >= type.size(1) || type.size(0) == 1);
  }

  private static boolean isColumnMajor(HostTensor tensor) {
    var type = tensor.type();
    return (type.stride(0) == 1 || type.size(0) == 1)
        && (type.stride(1) >= type.size(0) || type.size(1) == 1);
  }

  private static void blas(HostTensor left, HostTensor right, HostTensor result) {
    Blas.load();
    long inner = left.type().size(1);
    if (inner == 0) {
      CreationKernels.fill(result, 0);
      return;
    }
    var a = isRowMajor(left) || isColumnMajor(left) ? left : left.contiguous();
    var b = isRowMajor(right) || isColumnMajor(right) ? right : right.contiguous();
    int m = Math.toIntExact(result.type().size(0));
    int n = Math.toIntExact(result.type().size(1));
    int k = Math.toIntExact(inner);
    if (result.dtype() == DType.F32) {
      openblas_nolapack.cblas_sgemm(
          openblas_nolapack.CblasRowMajor,
          transposition(a),
          transposition(b),
          m,
          n,
          k,
          1f,
          new Floats(a.memory()),
          leading(a),
          new Floats(b.memory()),
          leading(b),
          0f,
          new Floats(result.memory()),
          leading(result));
    } else {
      openblas_nolapack.cblas_dgemm(
          openblas_nolapack.CblasRowMajor,
          transposition(a),
          transposition(b),
          m,
          n,
          k,
          1,
          new Doubles(a.memory()),
          leading(a),
          new Doubles(b.memory()),
          leading(b),
          0,
          new Doubles(result.memory()),
          leading(result));
    }
  }

  private static int transposition(HostTensor tensor) {
    return isRowMajor(tensor) ? openblas_nolapack.CblasNoTrans : openblas_nolapack.CblasTrans;
  }

  /** The distance of rows, or of columns in a column-major matrix; a single one may lie anyhow. */
  private static int leading(HostTensor tensor) {
    var type = tensor.type();
    long distance = isRowMajor(tensor) ? type.stride(0) : type.stride(1);
    long least = isRowMajor(tensor) ? type.size(1) : type.size(0);
    return Math.toIntExact(Math.max(distance, Math.max(1, least)));
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
