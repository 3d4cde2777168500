package dev.symplan.runtime.cuda;

import dev.symplan.codegen.Address;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.ir.DType;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.runtime.failure.RunException;
import java.util.Optional;
import java.util.function.ToLongFunction;
import org.bytedeco.cuda.cublas.cublasLtContext;
import org.bytedeco.cuda.cublas.cublasLtMatmulDescOpaque_t;
import org.bytedeco.cuda.cublas.cublasLtMatmulHeuristicResult_t;
import org.bytedeco.cuda.cublas.cublasLtMatmulPreferenceOpaque_t;
import org.bytedeco.cuda.cublas.cublasLtMatrixLayoutOpaque_t;
import org.bytedeco.cuda.global.cublas;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.DoublePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;

/**
 * Products by cuBLASLt, straight into planned memory, added up in f32 (f64 in f64) throughout.
 *
 * <p>Which algorithm is used is asked once, and by what the plan knows alone: types, shapes and the
 * alignment of offsets, so that ranks whose GPUs are alike take the same one. All products of a GPU
 * are in one stream and share one workspace.
 */
final class CublasProducts {

  /** What NVIDIA advises for Hopper: no algorithm is chosen that needs more. */
  private static final long MAX_WORKSPACE = 32L << 20;

  /** Partial sums stay in f32 until the last one. */
  private static final int REDUCTIONS =
      cublas.CUBLASLT_REDUCTION_SCHEME_NONE | cublas.CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

  private final Gpu gpu;
  private final Check check;
  private final ToLongFunction<Address> addresses;
  private final LibraryWorkspace workspace;
  private Optional<cublasLtContext> handle = Optional.empty();

  CublasProducts(Gpu gpu, LibraryWorkspace workspace, ToLongFunction<Address> addresses) {
    this.gpu = gpu;
    this.workspace = workspace;
    this.check = gpu.check();
    this.addresses = addresses;
  }

  private cublasLtContext handle() {
    return handle.orElseGet(
        () -> {
          var made = new cublasLtContext();
          check.blas(cublas.cublasLtCreate(made), "cublasLtCreate");
          gpu.onClose(() -> check.blas(cublas.cublasLtDestroy(made), "cublasLtDestroy"));
          handle = Optional.of(made);
          return made;
        });
  }

  /** {@return what puts the product into its stream} */
  Runnable prepare(Product product) {
    if (product.stream() != StreamKind.COMPUTE) {
      throw new IllegalStateException("a product beside compute");
    }
    var context = handle();
    var operation = operation(product);
    var left = layout(product, product.left(), product.rows(), product.inner());
    var right = layout(product, product.right(), product.inner(), product.columns());
    var addend = layout(product, product.addend(), product.rows(), product.columns());
    var result = layout(product, product.result(), product.rows(), product.columns());
    var choice = new cublasLtMatmulHeuristicResult_t();
    var call = "the product for '%s'".formatted(product.label());
    var preference = preference(product);
    var found = new int[1];
    check.blas(
        cublas.cublasLtMatmulAlgoGetHeuristic(
            context, operation, left, right, addend, result, preference, 1, choice, found),
        "cublasLtMatmulAlgoGetHeuristic for '%s'".formatted(product.label()));
    check.blas(
        cublas.cublasLtMatmulPreferenceDestroy(preference), "cublasLtMatmulPreferenceDestroy");
    if (found[0] == 0) {
      throw new RunException(
          "rank %d: cuBLASLt has no algorithm for '%s'".formatted(check.rank(), product.label()));
    }
    check.blas(choice.state(), call);
    workspace.reserve(choice.workspaceSize());
    var algorithm = choice.algo();
    // The algorithm is a part of the choice.
    gpu.onClose(choice::close);
    long workspaceNeeded = choice.workspaceSize();
    boolean wide = product.dtype() == DType.F64;
    var alpha = scalar(product.alpha(), wide);
    var beta = scalar(product.beta(), wide);
    var from = pointer(product.left());
    var by = pointer(product.right());
    var with = pointer(product.addend());
    var to = pointer(product.result());
    var stream = gpu.stream(product.stream());
    return () ->
        check.blas(
            cublas.cublasLtMatmul(
                context,
                operation,
                alpha,
                from,
                left,
                by,
                right,
                beta,
                with,
                addend,
                to,
                result,
                algorithm,
                workspace.memory(),
                workspaceNeeded,
                stream),
            call);
  }

  private Pointer pointer(Matrix matrix) {
    return new DevicePointer(addresses.applyAsLong(matrix.address()));
  }

  private cublasLtMatmulDescOpaque_t operation(Product product) {
    boolean wide = product.dtype() == DType.F64;
    try (var made = new PointerPointer<Pointer>(1)) {
      check.blas(
          cublas.cublasLtMatmulDescCreate(
              made,
              wide ? cublas.CUBLAS_COMPUTE_64F : cublas.CUBLAS_COMPUTE_32F,
              wide ? cudart.CUDA_R_64F : cudart.CUDA_R_32F),
          "cublasLtMatmulDescCreate");
      var operation = new cublasLtMatmulDescOpaque_t(made.get(0));
      gpu.onClose(
          () ->
              check.blas(cublas.cublasLtMatmulDescDestroy(operation), "cublasLtMatmulDescDestroy"));
      set(operation, cublas.CUBLASLT_MATMUL_DESC_TRANSA, transposition(product.left()));
      set(operation, cublas.CUBLASLT_MATMUL_DESC_TRANSB, transposition(product.right()));
      if (product.bias().isPresent()) {
        set(operation, cublas.CUBLASLT_MATMUL_DESC_EPILOGUE, cublas.CUBLASLT_EPILOGUE_BIAS);
        try (var bias = new LongPointer(new long[] {addresses.applyAsLong(product.bias().get())})) {
          check.blas(
              cublas.cublasLtMatmulDescSetAttribute(
                  operation, cublas.CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias, Long.BYTES),
              "cublasLtMatmulDescSetAttribute");
        }
      }
      return operation;
    }
  }

  private static int transposition(Matrix matrix) {
    return matrix.transposed() ? cublas.CUBLAS_OP_T : cublas.CUBLAS_OP_N;
  }

  private void set(cublasLtMatmulDescOpaque_t operation, int attribute, int value) {
    try (var pointer = new IntPointer(new int[] {value})) {
      check.blas(
          cublas.cublasLtMatmulDescSetAttribute(operation, attribute, pointer, Integer.BYTES),
          "cublasLtMatmulDescSetAttribute");
    }
  }

  /**
   * @param rows of the matrix as it is multiplied
   */
  private cublasLtMatrixLayoutOpaque_t layout(
      Product product, Matrix matrix, long rows, long columns) {
    boolean flipped = matrix.transposed();
    try (var made = new PointerPointer<Pointer>(1);
        var batches = new IntPointer(new int[] {Math.toIntExact(product.batches())});
        var stride = new LongPointer(new long[] {matrix.batchStride()})) {
      check.blas(
          cublas.cublasLtMatrixLayoutCreate(
              made,
              blasType(product.dtype()),
              flipped ? columns : rows,
              flipped ? rows : columns,
              matrix.leading()),
          "cublasLtMatrixLayoutCreate for '%s'".formatted(product.label()));
      var layout = new cublasLtMatrixLayoutOpaque_t(made.get(0));
      gpu.onClose(
          () ->
              check.blas(
                  cublas.cublasLtMatrixLayoutDestroy(layout), "cublasLtMatrixLayoutDestroy"));
      if (product.batches() > 1) {
        check.blas(
            cublas.cublasLtMatrixLayoutSetAttribute(
                layout, cublas.CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batches, Integer.BYTES),
            "cublasLtMatrixLayoutSetAttribute");
        check.blas(
            cublas.cublasLtMatrixLayoutSetAttribute(
                layout, cublas.CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride, Long.BYTES),
            "cublasLtMatrixLayoutSetAttribute");
      }
      return layout;
    }
  }

  private cublasLtMatmulPreferenceOpaque_t preference(Product product) {
    try (var made = new PointerPointer<Pointer>(1);
        var most = new LongPointer(new long[] {MAX_WORKSPACE})) {
      check.blas(cublas.cublasLtMatmulPreferenceCreate(made), "cublasLtMatmulPreferenceCreate");
      var preference = new cublasLtMatmulPreferenceOpaque_t(made.get(0));
      check.blas(
          cublas.cublasLtMatmulPreferenceSetAttribute(
              preference, cublas.CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most, Long.BYTES),
          "cublasLtMatmulPreferenceSetAttribute");
      set(preference, cublas.CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, REDUCTIONS);
      set(
          preference,
          cublas.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
          product.left().alignment(product.dtype()));
      set(
          preference,
          cublas.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          product.right().alignment(product.dtype()));
      set(
          preference,
          cublas.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
          product.addend().alignment(product.dtype()));
      set(
          preference,
          cublas.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
          product.result().alignment(product.dtype()));
      return preference;
    }
  }

  private void set(cublasLtMatmulPreferenceOpaque_t preference, int attribute, int value) {
    try (var pointer = new IntPointer(new int[] {value})) {
      check.blas(
          cublas.cublasLtMatmulPreferenceSetAttribute(
              preference, attribute, pointer, Integer.BYTES),
          "cublasLtMatmulPreferenceSetAttribute");
    }
  }

  private static Pointer scalar(double value, boolean wide) {
    return wide
        ? new DoublePointer(new double[] {value})
        : new FloatPointer(new float[] {(float) value});
  }

  private static int blasType(DType dtype) {
    return switch (dtype) {
      case F32 -> cudart.CUDA_R_32F;
      case F64 -> cudart.CUDA_R_64F;
      case F16 -> cudart.CUDA_R_16F;
      case BF16 -> cudart.CUDA_R_16BF;
      default -> throw new IllegalArgumentException(dtype.shortName());
    };
  }
}
