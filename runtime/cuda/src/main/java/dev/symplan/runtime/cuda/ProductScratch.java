package dev.symplan.runtime.cuda;

import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.ir.DType;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;

/**
 * Memory in which products are measured: their matrices several times, so that caches do not hold
 * them, and a workspace. It is filled with random numbers, as a GPU takes less power, and runs
 * faster, when it multiplies always the same.
 */
final class ProductScratch implements AutoCloseable {
  private static final long ALIGNMENT = 256;

  /** Matrices are repeated until they have so many times the size of the cache. */
  private static final int CACHES = 2;

  private static final int MAX_COPIES = 64;

  /** 1 MiB. */
  private static final int PATTERN_WORDS = 1 << 17;

  private final Gpu gpu;
  private final BytePointer memory;
  private final Layout layout;

  /** Where the parts of one copy lie, in bytes after its begin. */
  private record Layout(
      long factors,
      long workspace,
      long left,
      long right,
      long addend,
      long result,
      long copyBytes,
      int copies) {

    static Layout of(Product product, long cache) {
      long rows = product.rows();
      long columns = product.columns();
      long right = bytes(product, product.left(), rows, product.inner());
      long addend = right + bytes(product, product.right(), product.inner(), columns);
      long behind = product.beta() == 0 ? 0 : bytes(product, product.addend(), rows, columns);
      long result = addend + behind;
      long all = result + bytes(product, product.result(), rows, columns);
      long factors = aligned(rows * product.dtype().bytes());
      return new Layout(
          factors,
          factors + aligned(Math.max(rows, columns) * Float.BYTES),
          0,
          right,
          behind == 0 ? result : addend,
          result,
          all,
          (int) Math.clamp(Math.ceilDiv(CACHES * cache, all), 1, MAX_COPIES));
    }

    /** The bytes of a matrix, with all of its batches. */
    private static long bytes(Product product, Matrix matrix, long rows, long columns) {
      long near = matrix.transposed() ? columns : rows;
      long far = matrix.transposed() ? rows : columns;
      long elements =
          (product.batches() - 1) * matrix.batchStride() + (far - 1) * matrix.leading() + near;
      return aligned(elements * matrix.dtype().bytes());
    }

    private static long aligned(long bytes) {
      return Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT;
    }

    long firstCopy() {
      return workspace + CublasMatmul.MAX_WORKSPACE;
    }

    long bytes() {
      return firstCopy() + copies * copyBytes;
    }
  }

  private ProductScratch(Gpu gpu, BytePointer memory, Layout layout) {
    this.gpu = gpu;
    this.memory = memory;
    this.layout = layout;
  }

  /** {@return memory for a product; empty if the GPU does not have so much left} */
  static Optional<ProductScratch> allocate(Gpu gpu, Product product) {
    var layout = Layout.of(product, gpu.attribute(cudart.cudaDevAttrL2CacheSize));
    var memory = new BytePointer();
    if (cudart.cudaMalloc(memory, layout.bytes()) != cudart.cudaSuccess) {
      // So that the next call does not report it.
      cudart.cudaGetLastError();
      return Optional.empty();
    }
    var scratch = new ProductScratch(gpu, memory, layout);
    try {
      scratch.fill(product.left().dtype());
      return Optional.of(scratch);
    } catch (RuntimeException e) {
      throw Release.after(e, List.of(scratch::close));
    }
  }

  /** Numbers of both signs and about the size of 1, in a pattern that is repeated. */
  private void fill(DType dtype) {
    long kept =
        switch (dtype) {
          case F64 -> 0x800F_FFFF_FFFF_FFFFL;
          case F32 -> 0x807F_FFFF_807F_FFFFL;
          case F16 -> 0x83FF_83FF_83FF_83FFL;
          case BF16 -> 0x807F_807F_807F_807FL;
          case F8E4M3FN -> 0x8787_8787_8787_8787L;
          case F8E5M2 -> 0x8383_8383_8383_8383L;
          default -> throw new IllegalArgumentException(dtype.shortName());
        };
    long exponents =
        switch (dtype) {
          case F64 -> 0x3FE0_0000_0000_0000L;
          case F32 -> 0x3F00_0000_3F00_0000L;
          case F16 -> 0x3800_3800_3800_3800L;
          case BF16 -> 0x3F00_3F00_3F00_3F00L;
          case F8E4M3FN -> 0x3030_3030_3030_3030L;
          case F8E5M2 -> 0x3838_3838_3838_3838L;
          default -> throw new IllegalArgumentException(dtype.shortName());
        };
    var random = new SplittableRandom(1);
    var words = new long[PATTERN_WORDS];
    Arrays.setAll(words, _ -> random.nextLong() & kept | exponents);
    long all = layout.bytes();
    long done = Math.min(all, (long) PATTERN_WORDS * Long.BYTES);
    try (var pattern = new LongPointer(words)) {
      gpu.copy(memory, pattern, done);
    }
    while (done < all) {
      long next = Math.min(done, all - done);
      gpu.copy(new DevicePointer(memory.address() + done), memory, next);
      done += next;
    }
  }

  /** {@return where a bias and factors of the operands may be} */
  CublasMatmul.Vectors vectors() {
    long factors = memory.address() + layout.factors();
    return new CublasMatmul.Vectors(memory.address(), factors, factors);
  }

  /** {@return as much memory as an algorithm may need} */
  Pointer workspace() {
    return new DevicePointer(memory.address() + layout.workspace());
  }

  int copies() {
    return layout.copies();
  }

  /** {@return the matrices of one copy} */
  CublasMatmul.Memory matrices(int copy) {
    long begin = memory.address() + layout.firstCopy() + copy * layout.copyBytes();
    return new CublasMatmul.Memory(
        new DevicePointer(begin + layout.left()),
        new DevicePointer(begin + layout.right()),
        new DevicePointer(begin + layout.addend()),
        new DevicePointer(begin + layout.result()));
  }

  @Override
  public void close() {
    gpu.check().runtime(cudart.cudaFree(memory), "cudaFree");
  }
}
