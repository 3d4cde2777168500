package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.MemorySegment;
import org.bytedeco.javacpp.DoublePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.openblas.global.openblas;

/**
 * Matrix products, by OpenBLAS. 16-bit operands are multiplied in f32 and rounded once, as GPUs do;
 * integers are multiplied here.
 */
final class MatrixKernels {
  private MatrixKernels() {}

  /** Loads the library once; ranks are threads already, so it uses none of its own. */
  private static final class Blas {
    static {
      openblas.blas_set_num_threads(1);
    }

    static void load() {}
  }

  static ImmutableMap<String, HostKernel> table() {
    return ImmutableMap.of(
        "aten::mm",
        call -> multiply(call.tensor("self"), call.tensor("mat2"), call.result()),
        "aten::bmm",
        call -> batches(call.tensor("self"), call.tensor("mat2"), call.result()),
        "aten::addmm",
        call -> {
          multiply(call.tensor("mat1"), call.tensor("mat2"), call.result());
          addBias(call, call.tensor("self"));
        },
        "aten::baddbmm",
        call -> {
          batches(call.tensor("batch1"), call.tensor("batch2"), call.result());
          addBias(call, call.tensor("self"));
        },
        "aten::linear",
        MatrixKernels::linear);
  }

  private static void linear(HostCall call) {
    var weight = call.tensor("weight");
    var input = call.tensor("input").contiguous();
    long inner = weight.type().size(1);
    long rows = inner == 0 ? 0 : input.type().numel() / inner;
    var flat = input.as(TensorType.contiguous(input.dtype(), rows, inner));
    var result = call.result();
    var product =
        HostTensor.allocate(TensorType.contiguous(result.dtype(), rows, weight.type().size(0)));
    multiply(flat, transposed(weight), product);
    result.copyFrom(product.as(result.type().contiguous()));
    if (call.has("bias")) {
      Broadcasts.add(result, call.tensor("bias"), 1, 1);
    }
  }

  private static void addBias(HostCall call, HostTensor bias) {
    double beta = call.number("beta");
    double alpha = call.number("alpha");
    // beta 0 means that the summand is not read, whatever is in it.
    if (beta != 0 || alpha != 1) {
      Broadcasts.add(call.result(), bias, alpha, beta);
    }
  }

  private static HostTensor transposed(HostTensor matrix) {
    var type = matrix.type();
    return matrix.as(
        new TensorType(
            type.dtype(),
            ImmutableLongArray.of(type.size(1), type.size(0)),
            ImmutableLongArray.of(type.stride(1), type.stride(0)),
            MemorySpace.ANY));
  }

  private static void batches(HostTensor left, HostTensor right, HostTensor result) {
    for (long i = 0; i < result.type().size(0); i++) {
      multiply(matrix(left, i), matrix(right, i), matrix(result, i));
    }
  }

  private static HostTensor matrix(HostTensor batch, long index) {
    var type = batch.type();
    var memory = batch.memory().asSlice(index * type.stride(0) * type.dtype().bytes());
    return new HostTensor(
        memory,
        new TensorType(
            type.dtype(),
            type.sizes().subArray(1, 3),
            type.strides().subArray(1, 3),
            MemorySpace.ANY));
  }

  static void multiply(HostTensor left, HostTensor right, HostTensor result) {
    if (result.type().numel() == 0) {
      return;
    }
    switch (result.dtype()) {
      case F32, F64 -> {
        if (isRowMajor(result)) {
          blas(left, right, result);
        } else {
          var packed = HostTensor.allocate(result.type().contiguous());
          blas(left, right, packed);
          result.copyFrom(packed);
        }
      }
      case F16, BF16 -> {
        var product = HostTensor.allocate(result.type().contiguous().withDType(DType.F32));
        blas(widened(left), widened(right), product);
        result.copyFrom(product);
      }
      default -> integers(left, right, result);
    }
  }

  private static HostTensor widened(HostTensor tensor) {
    var wide = HostTensor.allocate(tensor.type().contiguous().withDType(DType.F32));
    wide.copyFrom(tensor);
    return wide;
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
      result.memory().asSlice(0, result.type().storageBytes()).fill((byte) 0);
      return;
    }
    var a = isRowMajor(left) || isColumnMajor(left) ? left : left.contiguous();
    var b = isRowMajor(right) || isColumnMajor(right) ? right : right.contiguous();
    int m = Math.toIntExact(result.type().size(0));
    int n = Math.toIntExact(result.type().size(1));
    int k = Math.toIntExact(inner);
    if (result.dtype() == DType.F32) {
      openblas.cblas_sgemm(
          openblas.CblasRowMajor,
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
      openblas.cblas_dgemm(
          openblas.CblasRowMajor,
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
    return isRowMajor(tensor) ? openblas.CblasNoTrans : openblas.CblasTrans;
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
