package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.KernelArgument.Memory;
import dev.symplan.ir.DType;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;

/**
 * The text of {@link StreamedProduct}.
 *
 * <p>A block has 16 or 32 rows of a matrix, and its warps share their columns. A tensor core adds
 * up 16 columns in any order, so a thread takes 8 columns that are neighbours in memory for two of
 * its instructions, and the same ones of the vectors. Warps' sums are added up in their order.
 */
final class StreamedKernel {
  private static final int WARPS = 8;
  private static final int THREADS = 32 * WARPS;

  /** Of a grid. */
  private static final int MAX_BLOCKS = Integer.MAX_VALUE;

  /** Rows of the matrix, and vectors, that an instruction multiplies. */
  static final int ROWS = 16;

  private static final int VECTORS = 8;

  /** Columns of which each thread of a warp has 16 bytes. */
  private static final int COLUMNS = 32;

  /** The vectors that a thread reads ahead, of 16 bytes of two rows. */
  private static final int READ_AHEAD = 4;

  /** Columns of a matrix come in multiples of this. */
  static final int INNER = COLUMNS * READ_AHEAD;

  private static final String TEXT =
      """

      struct alignas(16) Eight {
        unsigned x, y, z, w;
      };

      /** Reads what no other thread reads, but a kernel may write until this one has waited for it: so not by .nc. */
      __device__ __forceinline__ Eight streamed(const Eight* from) {
        Eight to;
        asm volatile("ld.global.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w) : "l"(from));
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
        $FIRST
        const unsigned short* from[2 * $LINES];
        #pragma unroll
        for (int i = 0; i < 2 * $LINES; i++) {
          const long long row = first + 8 * $LINE + line;
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
      $AWAIT  for (; k < $INNER; k += $WARPS * 32 * $DEPTH) {
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
      $RESULTS
      }
      """;

  private static final String ONE_RESULT =
      """
        for (int i = threadIdx.x; i < $LINES * 16 * $VECTORS; i += $THREADS) {
          const int row = i % ($LINES * 16);
          const int vector = i / ($LINES * 16);
          const long long at = first + row;
          float sum = 0;
          for (int w = 0; w < $WARPS; w++) {
            sum += shared[w][row][vector];
          }
          if (at < $ROWS) {
            ((unsigned short*)$RESULT)[(long long)vector * $RESULT_LEADING + at] = $NARROW($SUM);
          }
        }
      """;

  /** Later ops compute with the results as they would be in memory. */
  private static final String TWO_RESULTS =
      """
        for (int item = threadIdx.x; item < 16 * $VECTORS; item += $THREADS) {
          const int row = item % 16;
          const int vector = item / 16;
          const long long at = first + row;
          float sum0 = 0;
          float sum1 = 0;
          for (int w = 0; w < $WARPS; w++) {
            sum0 += shared[w][row][vector];
            sum1 += shared[w][row + 16][vector];
          }
          if (at < $ROWS) {
            const long long i = (long long)vector * $ROWS + at;
            const unsigned short bits0 = $NARROW($SUM0);
            const unsigned short bits1 = $NARROW($SUM1);
      $STORES            const float product0[] = {$WIDEN(bits0)};
            const float product1[] = {$WIDEN(bits1)};
      $REST    }
        }
      """;

  private final MemoryArguments memory;
  private final ImmutableList<Product> products;
  private final Product product;

  /** The expression for the number of the product where its matrix is read. */
  private final String selector;

  /** Whether nothing before the launch writes the matrices. */
  private final boolean constant;

  private StreamedKernel(
      MemoryArguments memory, ImmutableList<Product> products, String selector, boolean constant) {
    this.memory = memory;
    this.selector = selector;
    this.constant = constant;
    this.products = products;
    this.product = products.getFirst();
  }

  /**
   * {@return a launch whose blocks have rows of one matrix each}
   *
   * @param products with the same vectors
   * @param lines how many times 16 rows a block has
   * @param constant whether nothing before the launch writes the matrices
   */
  static Launch ofEach(ImmutableList<Product> products, int lines, boolean constant) {
    return new StreamedKernel(new MemoryArguments(), products, "which", constant).ofEach(lines);
  }

  /**
   * {@return a launch whose blocks have the same 16 rows of two matrices each, and then compute
   * with what they have of the results}
   *
   * @param constant whether nothing before the launch writes the matrices
   */
  static Launch ofBoth(ProductPair pair, boolean constant) {
    return new StreamedKernel(
            pair.memory(), ImmutableList.of(pair.one(), pair.other()), "i / 2", constant)
        .ofBoth(pair);
  }

  private Launch ofEach(int lines) {
    var blocks =
        products.stream().mapToLong(each -> Math.ceilDiv(each.rows(), ROWS * lines)).toArray();
    var begins = new long[blocks.length];
    var which = new StringBuilder("0");
    for (int i = 1; i < blocks.length; i++) {
      begins[i] = begins[i - 1] + blocks[i - 1];
      which.insert(0, "blockIdx.x >= %s ? %s : ".formatted(begins[i], i));
    }
    var results =
        ONE_RESULT
            .replace("$RESULT_LEADING", of(each -> number(each.result().leading())))
            .replace("$RESULT", of(this::result))
            .replace("$SUM", of(each -> computed(memory, each, "sum")));
    return launch(
        lines,
        blocks.length == 1
            ? "const long long first = (long long)blockIdx.x * ($LINES * 16);"
            : "const int which = %s;\n  const long long first = (long long)(blockIdx.x - %s) * ($LINES * 16);"
                .formatted(
                    which, of(Arrays.stream(begins).mapToObj(StreamedKernel::number).toList())),
        "i",
        results,
        begins[begins.length - 1] + blocks[blocks.length - 1],
        products.getLast().label());
  }

  private Launch ofBoth(ProductPair pair) {
    var other = products.getLast();
    var stores = new StringBuilder();
    for (int p = 0; p < 2; p++) {
      if (pair.stored().contains(products.get(p))) {
        stores.append(
            "      ((unsigned short*)%s)[i] = bits%s;\n".formatted(result(products.get(p)), p));
      }
    }
    var results =
        TWO_RESULTS
            .replace("$STORES", stores)
            .replace("$SUM0", computed(memory, product, "sum0"))
            .replace("$SUM1", computed(memory, other, "sum1"))
            .replace("$REST", pair.rest().indent(2));
    return launch(
        2,
        "const long long first = (long long)blockIdx.x * 16;",
        "(i % 2)",
        results,
        Math.ceilDiv(product.rows(), ROWS),
        pair.label());
  }

  private Launch launch(
      int lines, String first, String line, String results, long blocks, String label) {
    boolean bfloat = product.dtype() == DType.BF16;
    long rowsOfBlock = line.equals("i") ? (long) ROWS * lines : ROWS;
    boolean whole = products.stream().allMatch(each -> each.rows() % rowsOfBlock == 0);
    // Longer names first, as some begin like others.
    var text =
        TEXT.replace("$RESULTS\n", results)
            .replace("$FIRST", first)
            .replace("$AWAIT", constant ? "  %s\n".formatted(Kernel.AWAIT_BEFORE) : "")
            .replace("$MATRIX_LEADING", of(each -> number(each.left().leading())))
            .replace("$MATRIX", of(this::matrix))
            .replace("$RIGHT_LEADING", number(product.right().leading()))
            .replace("$RIGHT", pointer(product.right(), product.columns(), product.inner()))
            .replace("$TYPE", bfloat ? "bf16" : "f16")
            .replace("$NARROW", bfloat ? "to_bf16" : "to_f16")
            .replace("$WIDEN", bfloat ? "from_bf16" : "from_f16")
            .replace("$THREADS", number(THREADS))
            .replace("$WARPS", number(WARPS))
            .replace("$TILES", number(Math.ceilDiv(product.columns(), VECTORS)))
            .replace("$VECTORS", number(product.columns()))
            .replace("$WHOLE", Boolean.toString(whole))
            .replace("$LINES", number(lines))
            .replace("$LINE", line)
            .replace("$DEPTH", number(READ_AHEAD / lines))
            .replace("$INNER", number(product.inner()))
            .replace("$ROWS", of(each -> number(each.rows())));
    return memory
        .launch(
            product.stream(),
            CTypes.PRELUDE + memory.struct() + text,
            blocks,
            MAX_BLOCKS,
            THREADS,
            label)
        .streaming(
            products.stream()
                .map(each -> memory(each.left(), each.rows(), each.inner()))
                .collect(ImmutableList.toImmutableList()));
  }

  /** {@return an expression for the values of all products, each in its own blocks or rows} */
  private String of(Function<Product, String> value) {
    return of(products.stream().map(value).toList());
  }

  private String of(List<String> values) {
    var text = new StringBuilder(values.getLast());
    if (values.stream().distinct().count() > 1) {
      for (int i = values.size() - 2; i >= 0; i--) {
        text.insert(0, "%s == %s ? %s : ".formatted(selector, i, values.get(i)));
      }
      text.insert(0, '(').append(')');
    }
    return text.toString();
  }

  private String matrix(Product each) {
    return pointer(each.left(), each.rows(), each.inner());
  }

  private String result(Product each) {
    return pointer(each.result(), each.columns(), each.rows());
  }

  private String pointer(Matrix matrix, long lines, long length) {
    return memory.pointer(memory(matrix, lines, length));
  }

  /** {@return the memory of a matrix of 16-bit elements} */
  static Memory memory(Matrix matrix, long lines, long length) {
    long elements = (lines - 1) * matrix.leading() + length;
    return new Memory(matrix.address(), elements * 2);
  }

  /** {@return the memory of a product's bias} */
  static Memory bias(Product product, Address at) {
    return new Memory(at, product.rows() * product.dtype().bytes());
  }

  /** {@return the memory of what a product is added to, or of its result if it is to nothing} */
  static Memory addend(Product product) {
    return memory(product.addend(), product.columns(), product.rows());
  }

  /** {@return an element of a product, from the sum of the row {@code at} and a {@code vector}} */
  static String computed(MemoryArguments memory, Product each, String sum) {
    var value =
        each.alpha() == 1 ? sum : "%s * %s".formatted(Literals.floating(each.alpha(), false), sum);
    if (each.beta() != 0) {
      var at = "(long long)vector * %s + at".formatted(each.addend().leading());
      var addend = widened(memory, each, addend(each), at);
      value =
          each.beta() == 1
              ? value + " + " + addend
              : "fmaf(%s, %s, %s)".formatted(Literals.floating(each.beta(), false), addend, value);
    }
    return each.bias().isPresent()
        ? value + " + " + widened(memory, each, bias(each, each.bias().get()), "at")
        : value;
  }

  private static String widened(MemoryArguments memory, Product each, Memory from, String at) {
    return "%s(%s)"
        .formatted(
            each.dtype() == DType.BF16 ? "from_bf16" : "from_f16",
            memory.element("unsigned short", from, at));
  }

  private static String number(long value) {
    return Long.toString(value);
  }
}
