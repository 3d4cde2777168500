package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.DeviceStep.Scales;
import dev.symplan.ir.DType;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.Supplier;
import org.bytedeco.cuda.cublas.cublasLtContext;
import org.bytedeco.cuda.cublas.cublasLtMatmulAlgo_t;
import org.bytedeco.cuda.cublas.cublasLtMatmulDescOpaque_t;
import org.bytedeco.cuda.cublas.cublasLtMatmulHeuristicResult_t;
import org.bytedeco.cuda.cublas.cublasLtMatmulPreferenceOpaque_t;
import org.bytedeco.cuda.cublas.cublasLtMatrixLayoutOpaque_t;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cublas;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.DoublePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.javacpp.SizeTPointer;

/**
 * One product as cuBLASLt describes it, added up in f32 (f64 in f64) throughout, but for 8-bit
 * floats, whose sums tensor cores keep with fewer bits. Algorithms that add up in an order that may
 * change from run to run do not count as such.
 */
final class CublasMatmul implements AutoCloseable {

  /** The size that NVIDIA advises for Hopper. Algorithms that need more are not chosen. */
  static final long MAX_WORKSPACE = 32L << 20;

  /** The library's answers to products that it does not compute on a GPU. */
  private static final ImmutableSet<Integer> REFUSALS =
      ImmutableSet.of(
          cublas.CUBLAS_STATUS_NOT_SUPPORTED,
          cublas.CUBLAS_STATUS_INVALID_VALUE,
          cublas.CUBLAS_STATUS_ARCH_MISMATCH);

  /** Partial sums stay in f32 until the last one, and are added up in a step of their own. */
  private static final int REDUCTIONS =
      cublas.CUBLASLT_REDUCTION_SCHEME_NONE | cublas.CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

  /**
   * The addresses of what the library takes when it is described; any where the product has none.
   *
   * @param bias of the bias
   * @param left of the factors of the left matrix
   * @param right of the factors of the right matrix
   */
  record Vectors(long bias, long left, long right) {}

  /** The addresses of a product's matrices. */
  record Memory(Pointer left, Pointer right, Pointer addend, Pointer result) {}

  private final Check check;
  private final cublasLtContext context;
  private final Product product;
  private final List<Runnable> releases = new ArrayList<>();
  private final cublasLtMatmulDescOpaque_t operation;
  private final cublasLtMatrixLayoutOpaque_t left;
  private final cublasLtMatrixLayoutOpaque_t right;
  private final cublasLtMatrixLayoutOpaque_t addend;
  private final cublasLtMatrixLayoutOpaque_t result;
  private final Pointer alpha;
  private final Pointer beta;

  CublasMatmul(Check check, cublasLtContext context, Product product, Vectors vectors) {
    this.check = check;
    this.context = context;
    this.product = product;
    boolean wide = product.dtype() == DType.F64;
    this.alpha = scalar(product.alpha(), wide);
    this.beta = scalar(product.beta(), wide);
    try {
      this.operation = operation(wide, vectors);
      this.left = layout(product.left(), product.rows(), product.inner());
      this.right = layout(product.right(), product.inner(), product.columns());
      this.addend = layout(product.addend(), product.rows(), product.columns());
      this.result = layout(product.result(), product.rows(), product.columns());
    } catch (RuntimeException e) {
      throw Release.after(e, releases);
    }
  }

  /**
   * {@return algorithms that compute it, first what the library takes for the fastest; none where
   * the library does not multiply such 8-bit floats}
   *
   * @param most how many
   */
  ImmutableList<ProductAlgorithm> algorithms(int most) {
    var preference = preference();
    try (var found = new cublasLtMatmulHeuristicResult_t(most)) {
      var count = new int[1];
      int status =
          cublas.cublasLtMatmulAlgoGetHeuristic(
              context, operation, left, right, addend, result, preference, most, found, count);
      if (product.scales().isPresent() && REFUSALS.contains(status)) {
        return ImmutableList.of();
      }
      check.blas(status, "cublasLtMatmulAlgoGetHeuristic for '%s'".formatted(product.label()));
      var algorithms = ImmutableList.<ProductAlgorithm>builder();
      for (int i = 0; i < count[0]; i++) {
        var one = found.getPointer(i);
        if (one.state() == cublas.CUBLAS_STATUS_SUCCESS && workspace(one.algo()).isPresent()) {
          algorithms.add(ProductAlgorithm.of(one.algo()));
        }
      }
      return algorithms.build();
    } finally {
      check.blas(
          cublas.cublasLtMatmulPreferenceDestroy(preference), "cublasLtMatmulPreferenceDestroy");
    }
  }

  /**
   * {@return the workspace that an algorithm needs, in bytes; empty if it does not compute the
   * product, needs too much, or adds up in another way}
   */
  OptionalLong workspace(cublasLtMatmulAlgo_t algorithm) {
    try (var found = new cublasLtMatmulHeuristicResult_t()) {
      boolean fits =
          addsUpInOrder(algorithm)
              && cublas.cublasLtMatmulAlgoCheck(
                      context, operation, left, right, addend, result, algorithm, found)
                  == cublas.CUBLAS_STATUS_SUCCESS
              && found.workspaceSize() <= MAX_WORKSPACE;
      return fits ? OptionalLong.of(found.workspaceSize()) : OptionalLong.empty();
    }
  }

  /** Algorithms that do not say were found with a preference that leaves others out. */
  private static boolean addsUpInOrder(cublasLtMatmulAlgo_t algorithm) {
    try (var scheme = new IntPointer(1);
        var written = new SizeTPointer(1)) {
      int status =
          cublas.cublasLtMatmulAlgoConfigGetAttribute(
              algorithm,
              cublas.CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
              scheme,
              Integer.BYTES,
              written);
      return status != cublas.CUBLAS_STATUS_SUCCESS || (scheme.get() & ~REDUCTIONS) == 0;
    }
  }

  /**
   * {@return the action that puts the product into a stream}
   *
   * @param workspaceBytes the bytes that the algorithm {@linkplain #workspace needs}
   * @param workspace gives so much when the product is put there
   */
  Runnable call(
      cublasLtMatmulAlgo_t algorithm,
      long workspaceBytes,
      Supplier<Pointer> workspace,
      Memory memory,
      CUstream_st stream) {
    var call = "the product for '%s'".formatted(product.label());
    return () ->
        check.blas(
            cublas.cublasLtMatmul(
                context,
                operation,
                alpha,
                memory.left(),
                left,
                memory.right(),
                right,
                beta,
                memory.addend(),
                addend,
                memory.result(),
                result,
                algorithm,
                workspace.get(),
                workspaceBytes,
                stream),
            call);
  }

  private cublasLtMatmulDescOpaque_t operation(boolean wide, Vectors vectors) {
    try (var made = new PointerPointer<Pointer>(1)) {
      check.blas(
          cublas.cublasLtMatmulDescCreate(
              made,
              wide ? cublas.CUBLAS_COMPUTE_64F : cublas.CUBLAS_COMPUTE_32F,
              wide ? cudart.CUDA_R_64F : cudart.CUDA_R_32F),
          "cublasLtMatmulDescCreate");
      var described = new cublasLtMatmulDescOpaque_t(made.get(0));
      releases.add(
          () ->
              check.blas(cublas.cublasLtMatmulDescDestroy(described), "cublasLtMatmulDescDestroy"));
      set(described, cublas.CUBLASLT_MATMUL_DESC_TRANSA, transposition(product.left()));
      set(described, cublas.CUBLASLT_MATMUL_DESC_TRANSB, transposition(product.right()));
      if (product.bias().isPresent()) {
        set(described, cublas.CUBLASLT_MATMUL_DESC_EPILOGUE, cublas.CUBLASLT_EPILOGUE_BIAS);
        pointer(described, cublas.CUBLASLT_MATMUL_DESC_BIAS_POINTER, vectors.bias());
      }
      product.scales().ifPresent(scales -> scale(described, scales, vectors));
      return described;
    }
  }

  /** Has the next calls read their bias at this address. */
  void moveBias(long to) {
    pointer(operation, cublas.CUBLASLT_MATMUL_DESC_BIAS_POINTER, to);
  }

  /** Has the next calls read the factors of the left matrix at this address. */
  void moveLeftScales(long to) {
    pointer(operation, cublas.CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, to);
  }

  /** Has the next calls read the factors of the right matrix at this address. */
  void moveRightScales(long to) {
    pointer(operation, cublas.CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, to);
  }

  private void scale(cublasLtMatmulDescOpaque_t described, Scales scales, Vectors vectors) {
    pointer(described, cublas.CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, vectors.left());
    pointer(described, cublas.CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, vectors.right());
    if (scales.byLine()) {
      int mode = cublas.CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
      set(described, cublas.CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode);
      set(described, cublas.CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode);
    }
    try (var fast = new BytePointer(new byte[] {(byte) (scales.fast() ? 1 : 0)})) {
      set(described, cublas.CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast, Byte.BYTES);
    }
  }

  private void pointer(cublasLtMatmulDescOpaque_t described, int attribute, long address) {
    try (var pointer = new LongPointer(new long[] {address})) {
      set(described, attribute, pointer, Long.BYTES);
    }
  }

  private static int transposition(Matrix matrix) {
    return matrix.transposed() ? cublas.CUBLAS_OP_T : cublas.CUBLAS_OP_N;
  }

  private void set(cublasLtMatmulDescOpaque_t described, int attribute, int value) {
    try (var pointer = new IntPointer(new int[] {value})) {
      set(described, attribute, pointer, Integer.BYTES);
    }
  }

  private void set(cublasLtMatmulDescOpaque_t described, int attribute, Pointer value, long bytes) {
    check.blas(
        cublas.cublasLtMatmulDescSetAttribute(described, attribute, value, bytes),
        "cublasLtMatmulDescSetAttribute");
  }

  /**
   * @param rows of the matrix as it is multiplied
   */
  private cublasLtMatrixLayoutOpaque_t layout(Matrix matrix, long rows, long columns) {
    boolean flipped = matrix.transposed();
    try (var made = new PointerPointer<Pointer>(1);
        var batches = new IntPointer(new int[] {Math.toIntExact(product.batches())});
        var stride = new LongPointer(new long[] {matrix.batchStride()})) {
      check.blas(
          cublas.cublasLtMatrixLayoutCreate(
              made,
              blasType(matrix.dtype()),
              flipped ? columns : rows,
              flipped ? rows : columns,
              matrix.leading()),
          "cublasLtMatrixLayoutCreate for '%s'".formatted(product.label()));
      var layout = new cublasLtMatrixLayoutOpaque_t(made.get(0));
      releases.add(
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

  private cublasLtMatmulPreferenceOpaque_t preference() {
    try (var made = new PointerPointer<Pointer>(1);
        var most = new LongPointer(new long[] {MAX_WORKSPACE})) {
      check.blas(cublas.cublasLtMatmulPreferenceCreate(made), "cublasLtMatmulPreferenceCreate");
      var preference = new cublasLtMatmulPreferenceOpaque_t(made.get(0));
      check.blas(
          cublas.cublasLtMatmulPreferenceSetAttribute(
              preference, cublas.CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most, Long.BYTES),
          "cublasLtMatmulPreferenceSetAttribute");
      set(preference, cublas.CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, REDUCTIONS);
      alignment(preference, cublas.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product.left());
      alignment(preference, cublas.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product.right());
      alignment(preference, cublas.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product.addend());
      alignment(preference, cublas.CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product.result());
      return preference;
    }
  }

  private void alignment(
      cublasLtMatmulPreferenceOpaque_t preference, int attribute, Matrix matrix) {
    set(preference, attribute, matrix.alignment());
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
      case F8E4M3FN -> cudart.CUDA_R_8F_E4M3;
      case F8E5M2 -> cudart.CUDA_R_8F_E5M2;
      default -> throw new IllegalArgumentException(dtype.shortName());
    };
  }

  @Override
  public void close() {
    Release.all(releases.reversed());
    alpha.close();
    beta.close();
  }
}
