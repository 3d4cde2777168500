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
 * <p>A block has 16 or 32 rows of the matrix, and its warps share their columns. A tensor core adds
 * up 16 columns in any order, so a thread takes 8 columns that are neighbours in memory for two of
 * its instructions, and the same ones of the vectors. Warps' sums are added up in their order.
 */
final class StreamedProduct {

  /** Vectors at most: with more, reading those takes longer than reading the matrix. */
  private static final int MAX_VECTORS = 16;

  /** Elements of the matrix at least: smaller ones stay in the cache. */
  private static final long MIN_ELEMENTS = 1 << 20;

  private static final int WARPS = 8;
  private static final int THREADS = 32 * WARPS;

  /** Of a grid. */
  private static final int MAX_BLOCKS = Integer.MAX_VALUE;

  /** Rows of the matrix, and vectors, that an instruction multiplies. */
  private static final int ROWS = 16;

  private static final int VECTORS = 8;

  /** Columns of which each thread of a warp has 16 bytes. */
  private static final int COLUMNS = 32;

  /**
   * What a thread reads ahead, in 16 bytes of two rows: several rows share what is read of the
   * vectors, but only if there are blocks for all multiprocessors then.
   */
  private static final int READ_AHEAD = 4;

  private static final int MIN_BLOCKS = 192;

  private static final String TEXT =
      """

      struct alignas(16) Eight {
        unsigned x, y, z, w;
      };

      /** Reads what no other thread reads. */
      __device__ __forceinline__ Eight streamed(const Eight* from) {
        Eight to;
        asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w) : "l"(from));
        return to;
      }

      /** Adds the product of 16 × 16 and 16 × 8 elements to 16 × 8 sums. */
      __device__ __forceinline__ void add_product(float* sums, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.$TYPE.$TYPE.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
      }

      extern "C" __global__ void __launch_bounds__($THREADS, 2) symplan_kernel(const __grid_constant__ Args args) {
        __shared__ float shared[$WARPS][$LINES * 16][$TILES * 8 + 1];
        const int lane = threadIdx.x % 32;
        const int warp = threadIdx.x / 32;
        const int line = lane / 4;
        const int part = lane % 4 * 8;
        const long long first = (long long)blockIdx.x * ($LINES * 16);
        const unsigned short* from[2 * $LINES];
        #pragma unroll
        for (int i = 0; i < 2 * $LINES; i++) {
          const long long row = first + 8 * i + line;
          from[i] = (const unsigned short*)$MATRIX + ($WHOLE || row < $ROWS ? row : $ROWS - 1) * $MATRIX_LEADING + part;
        }
        const unsigned short* vectors[$TILES];
        #pragma unroll
        for (int t = 0; t < $TILES; t++) {
          const int vector = t * 8 + line < $VECTORS ? t * 8 + line : $VECTORS - 1;
          vectors[t] = (const unsigned short*)$RIGHT + (long long)vector * $RIGHT_LEADING + part;
        }
        float sums[$LINES][$TILES][4] = {};
        Eight next[$DEPTH][2 * $LINES];
        int k = warp * 32 * $DEPTH;
        if (k < $INNER) {
          #pragma unroll
          for (int j = 0; j < $DEPTH; j++) {
            #pragma unroll
            for (int i = 0; i < 2 * $LINES; i++) {
              next[j][i] = streamed((const Eight*)(from[i] + k + 32 * j));
            }
          }
        }
        for (; k < $INNER; k += $WARPS * 32 * $DEPTH) {
          const int ahead = k + $WARPS * 32 * $DEPTH;
          #pragma unroll
          for (int j = 0; j < $DEPTH; j++) {
            Eight by[$TILES];
            #pragma unroll
            for (int t = 0; t < $TILES; t++) {
              by[t] = *(const Eight*)(vectors[t] + k + 32 * j);
            }
            #pragma unroll
            for (int i = 0; i < $LINES; i++) {
              #pragma unroll
              for (int t = 0; t < $TILES; t++) {
                add_product(sums[i][t], next[j][2 * i].x, next[j][2 * i + 1].x, next[j][2 * i].y, next[j][2 * i + 1].y, by[t].x, by[t].y);
                add_product(sums[i][t], next[j][2 * i].z, next[j][2 * i + 1].z, next[j][2 * i].w, next[j][2 * i + 1].w, by[t].z, by[t].w);
              }
              if (ahead < $INNER) {
                next[j][2 * i] = streamed((const Eight*)(from[2 * i] + ahead + 32 * j));
                next[j][2 * i + 1] = streamed((const Eight*)(from[2 * i + 1] + ahead + 32 * j));
              }
            }
          }
        }
        #pragma unroll
        for (int i = 0; i < $LINES; i++) {
          #pragma unroll
          for (int t = 0; t < $TILES; t++) {
            const int column = t * 8 + lane % 4 * 2;
            shared[warp][16 * i + line][column] = sums[i][t][0];
            shared[warp][16 * i + line][column + 1] = sums[i][t][1];
            shared[warp][16 * i + line + 8][column] = sums[i][t][2];
            shared[warp][16 * i + line + 8][column + 1] = sums[i][t][3];
          }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < $LINES * 16 * $VECTORS; i += $THREADS) {
          const int row = i % ($LINES * 16);
          const int vector = i / ($LINES * 16);
          const long long at = first + row;
          float sum = 0;
          for (int w = 0; w < $WARPS; w++) {
            sum += shared[w][row][vector];
          }
          if (at < $ROWS) {
            ((unsigned short*)$RESULT)[(long long)vector * $RESULT_LEADING + at] = $NARROW(sum$BIAS);
          }
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
        && product.inner() % (COLUMNS * READ_AHEAD) == 0
        && product.rows() * product.inner() >= MIN_ELEMENTS
        && product.rows() / ROWS < MAX_BLOCKS
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
    long lines = rows / (2 * ROWS) >= MIN_BLOCKS ? 2 : 1;
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
            .replace("$WHOLE", Boolean.toString(rows % (ROWS * lines) == 0))
            .replace("$LINES", number(lines))
            .replace("$DEPTH", number(READ_AHEAD / lines))
            .replace("$INNER", number(inner))
            .replace("$ROWS", number(rows));
    return memory.launch(
        product.stream(),
        CTypes.PRELUDE + memory.struct() + text,
        Math.ceilDiv(rows, ROWS * lines),
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
