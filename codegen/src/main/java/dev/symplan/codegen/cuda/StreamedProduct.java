package dev.symplan.codegen.cuda;

import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.ir.DType;
import java.util.Optional;

/**
 * The product of a large matrix, such as weights, and a few vectors, such as tokens. The time of it
 * is that of reading the matrix, so every element of it is read once, straight into the registers
 * of tensor cores, and the next ones are on their way meanwhile.
 *
 * <p>A block has sixteen rows of the matrix, and its warps share their columns. A tensor core adds
 * up 16 columns in any order, so a thread takes 8 columns that are neighbours in memory for two of
 * its instructions, and the same ones of the vectors. Warps' sums are added up in their order.
 */
final class StreamedProduct {

  /** Vectors at most: with more, reading those takes longer than reading the matrix. */
  private static final int MAX_VECTORS = 32;

  /** Elements of a matrix at least: smaller ones are in the cache. */
  private static final long MIN_ELEMENTS = 1 << 20;

  private static final int WARPS = 8;
  private static final int THREADS = 32 * WARPS;
  private static final int MAX_BLOCKS = 1 << 20;

  /** Rows of the matrix, and vectors, that an instruction multiplies. */
  private static final int ROWS = 16;

  private static final int VECTORS = 8;

  /** Columns that a warp reads before it multiplies: 16 bytes of each thread, twice. */
  private static final int COLUMNS = 64;

  private static final String TEXT =
      """

      struct alignas(16) Eight {
        unsigned x, y, z, w;
      };

      /** Reads what no other thread reads. */
      __device__ __forceinline__ Eight streamed(const Eight* from) {
        Eight to;
        asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w) : "l"(from));
        return to;
      }

      /** Adds the product of 16 × 16 and 16 × 8 elements to 16 × 8 sums. */
      __device__ __forceinline__ void add_product(float* sums, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.$TYPE.$TYPE.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
      }

      extern "C" __global__ void __launch_bounds__($THREADS, 4) symplan_kernel(const __grid_constant__ Args args) {
        __shared__ float shared[$WARPS][16][$TILES * 8 + 1];
        const int lane = threadIdx.x % 32;
        const int warp = threadIdx.x / 32;
        const int line = lane / 4;
        const int part = lane % 4 * 8;
        for (long long first = (long long)blockIdx.x * 16; first < $ROWS; first += (long long)gridDim.x * 16) {
          const long long row = first + line < $ROWS ? first + line : $ROWS - 1;
          const long long low = first + line + 8 < $ROWS ? first + line + 8 : $ROWS - 1;
          const unsigned short* upper = (const unsigned short*)$MATRIX + row * $MATRIX_LEADING + part;
          const unsigned short* lower = (const unsigned short*)$MATRIX + low * $MATRIX_LEADING + part;
          float sums[$TILES][4] = {};
          Eight next[4];
          if (warp * $COLUMNS < $INNER) {
            for (int j = 0; j < 2; j++) {
              next[2 * j] = streamed((const Eight*)(upper + warp * $COLUMNS + 32 * j));
              next[2 * j + 1] = streamed((const Eight*)(lower + warp * $COLUMNS + 32 * j));
            }
          }
          for (int k = warp * $COLUMNS; k < $INNER; k += $WARPS * $COLUMNS) {
            Eight now[4];
            for (int j = 0; j < 4; j++) {
              now[j] = next[j];
            }
            const int ahead = k + $WARPS * $COLUMNS;
            if (ahead < $INNER) {
              for (int j = 0; j < 2; j++) {
                next[2 * j] = streamed((const Eight*)(upper + ahead + 32 * j));
                next[2 * j + 1] = streamed((const Eight*)(lower + ahead + 32 * j));
              }
            }
            for (int j = 0; j < 2; j++) {
              for (int t = 0; t < $TILES; t++) {
                const int vector = t * 8 + line < $VECTORS ? t * 8 + line : $VECTORS - 1;
                const Eight by = *(const Eight*)((const unsigned short*)$RIGHT + (long long)vector * $RIGHT_LEADING + k + 32 * j + part);
                add_product(sums[t], now[2 * j].x, now[2 * j + 1].x, now[2 * j].y, now[2 * j + 1].y, by.x, by.y);
                add_product(sums[t], now[2 * j].z, now[2 * j + 1].z, now[2 * j].w, now[2 * j + 1].w, by.z, by.w);
              }
            }
          }
          for (int t = 0; t < $TILES; t++) {
            const int column = t * 8 + lane % 4 * 2;
            shared[warp][line][column] = sums[t][0];
            shared[warp][line][column + 1] = sums[t][1];
            shared[warp][line + 8][column] = sums[t][2];
            shared[warp][line + 8][column + 1] = sums[t][3];
          }
          __syncthreads();
          for (int i = threadIdx.x; i < 16 * $VECTORS; i += $THREADS) {
            const long long at = first + i % 16;
            float sum = 0;
            for (int w = 0; w < $WARPS; w++) {
              sum += shared[w][i % 16][i / 16];
            }
            if (at < $ROWS) {
              ((unsigned short*)$RESULT)[(long long)(i / 16) * $RESULT_LEADING + at] = $NARROW(sum$BIAS);
            }
          }
          __syncthreads();
        }
      }
      """;

  private StreamedProduct() {}

  /** {@return the launch that computes a product; empty where BLAS is to do it} */
  static Optional<Launch> of(Product product) {
    return suits(product) ? Optional.of(launch(product)) : Optional.empty();
  }

  private static boolean suits(Product product) {
    var dtype = product.dtype();
    return (dtype == DType.BF16 || dtype == DType.F16)
        && product.batches() == 1
        && product.alpha() == 1
        && product.beta() == 0
        && product.columns() <= MAX_VECTORS
        && product.inner() % COLUMNS == 0
        && product.rows() * product.inner() >= MIN_ELEMENTS
        && product.left().transposed()
        && !product.right().transposed()
        && !product.result().transposed()
        && isAligned(product.left())
        && isAligned(product.right());
  }

  /** Whether all rows begin at multiples of 16 bytes. */
  private static boolean isAligned(Matrix matrix) {
    return matrix.address().isVectorAligned() && matrix.leading() % 8 == 0;
  }

  private static Launch launch(Product product) {
    var memory = new MemoryArguments();
    long rows = product.rows();
    long inner = product.inner();
    long columns = product.columns();
    boolean bfloat = product.dtype() == DType.BF16;
    var matrix = pointer(memory, product.left(), rows, inner);
    var right = pointer(memory, product.right(), columns, inner);
    var result = pointer(memory, product.result(), columns, rows);
    var bias =
        product
            .bias()
            .map(
                at ->
                    " + %s(%s)"
                        .formatted(
                            bfloat ? "from_bf16" : "from_f16",
                            memory.element(
                                "unsigned short",
                                new KernelArgument.Memory(at, rows * product.dtype().bytes()),
                                "at")))
            .orElse("");
    // Longer names first, as some begin like others.
    var text =
        TEXT.replace("$MATRIX_LEADING", number(product.left().leading()))
            .replace("$RIGHT_LEADING", number(product.right().leading()))
            .replace("$RESULT_LEADING", number(product.result().leading()))
            .replace("$MATRIX", matrix)
            .replace("$RIGHT", right)
            .replace("$RESULT", result)
            .replace("$TYPE", bfloat ? "bf16" : "f16")
            .replace("$NARROW", bfloat ? "to_bf16" : "to_f16")
            .replace("$BIAS", bias)
            .replace("$THREADS", number(THREADS))
            .replace("$WARPS", number(WARPS))
            .replace("$TILES", number(Math.ceilDiv(columns, VECTORS)))
            .replace("$VECTORS", number(columns))
            .replace("$COLUMNS", number(COLUMNS))
            .replace("$INNER", number(inner))
            .replace("$ROWS", number(rows));
    return memory.launch(
        product.stream(),
        CTypes.PRELUDE + memory.struct() + text,
        Math.ceilDiv(rows, ROWS),
        MAX_BLOCKS,
        THREADS,
        product.label());
  }

  private static String number(long value) {
    return Long.toString(value);
  }

  private static String pointer(MemoryArguments memory, Matrix matrix, long lines, long length) {
    long elements = (lines - 1) * matrix.leading() + length;
    return memory.pointer(new KernelArgument.Memory(matrix.address(), elements * 2));
  }
}
