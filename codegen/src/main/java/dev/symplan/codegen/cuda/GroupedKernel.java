package dev.symplan.codegen.cuda;

import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.GroupedProduct.Form;
import dev.symplan.codegen.cuda.KernelArgument.Memory;
import dev.symplan.ir.DType;
import dev.symplan.planner.machine.Alignment;

/**
 * The text of a {@link GroupedProduct} by tensor cores.
 *
 * <p>A block computes one tile of one group, which it finds by itself: the grid has as many blocks
 * as there may be tiles, and those that find none end. Parts of the operands along the inner
 * dimension are on their way into shared memory while earlier ones are multiplied. Chunks of 16
 * bytes are permuted there, so that reading eight of them in a column takes all banks.
 *
 * <p>Where elements of the dimension that groups share are side by side, tiles begin at multiples
 * of 16 bytes, and leave out what belongs to the group before.
 */
final class GroupedKernel {

  /** Of a grid. */
  static final long MAX_BLOCKS = Integer.MAX_VALUE;

  private static final int THREADS = 256;

  /** Elements of 16 bytes. */
  private static final int CHUNK = Alignment.VECTOR / 2;

  /** Inner elements of a part. */
  private static final int DEPTH = 32;

  /**
   * How a block's tile is shared by its warps.
   *
   * @param rows of the tile
   * @param warpRows how many warps are below each other
   * @param stages parts in shared memory, which holds 48 KiB
   */
  private record Tile(int rows, int warpRows, int stages) {
    static final int COLUMNS = 128;
    private static final int WARPS = THREADS / 32;

    int ofWarpRows() {
      return rows / warpRows;
    }

    int ofWarpColumns() {
      return COLUMNS / (WARPS / warpRows);
    }
  }

  private static final Tile LARGE = new Tile(128, 2, 3);

  /** Reading a group's matrix takes longer than to multiply so few rows. */
  private static final Tile FLAT = new Tile(32, 1, 4);

  private static final String TEXT =
      """

      struct alignas(16) Eight {
        unsigned x, y, z, w;
      };

      /** Begins to copy 16 bytes, some of which may count as 0 without being read. */
      __device__ __forceinline__ void copy_ahead(Eight* to, const void* from, int bytes) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes));
      }

      /** Reads 8 × 8 elements four times: a lane has the address of a line, and gets two neighbours of each. */
      __device__ __forceinline__ void read_lines(unsigned* to, const Eight* from) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"((unsigned)__cvta_generic_to_shared(from)) : "memory");
      }

      /** The same, but a lane gets elements that lie below each other. */
      __device__ __forceinline__ void read_columns(unsigned* to, const Eight* from) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"((unsigned)__cvta_generic_to_shared(from)) : "memory");
      }

      /** Adds the product of 16 × 16 and 16 × 8 elements to 16 × 8 sums. */
      __device__ __forceinline__ void add_product(float* sums, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.$TYPE.$TYPE.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
      }

      /** The number of elements up to an end, of eight at most. */
      __device__ __forceinline__ int up_to(long long left) {
        return left < 0 ? 0 : left > 8 ? 8 : (int)left;
      }

      /** Where a chunk of a line is, of so many. */
      template <int CHUNKS>
      __device__ __forceinline__ int place(int line, int chunk) {
        return line * CHUNKS + (CHUNKS >= 8 ? chunk ^ (line & 7) : chunk ^ (line >> 1 & 3));
      }

      extern "C" __global__ void __launch_bounds__($THREADS, 2) symplan_kernel(const __grid_constant__ Args args) {
        __shared__ Eight tiles[$STAGES][($TILE_ROWS + $TILE_COLUMNS) * 4];
        for (int g = threadIdx.x; g < $GROUPS; g += $THREADS) {
          const int end = $END(g);
          if (end < (g == 0 ? 0 : $END(g - 1)) || end > $SHARED) {
            __trap();
          }
        }
        // No thread goes on with ends that another one refuses.
        __syncthreads();
      $FIND
        const unsigned short* left = (const unsigned short*)$LEFT + group * $LEFT_GROUP;
        const unsigned short* right = (const unsigned short*)$RIGHT + group * $RIGHT_GROUP;
        const int lane = threadIdx.x % 32;
        const int warp = threadIdx.x / 32;
        const int warp_row = warp % $WARP_ROWS * $OF_WARP_ROWS;
        const int warp_column = warp / $WARP_ROWS * $OF_WARP_COLUMNS;
        auto load = [&](Eight* tile, long long k) {
      $LOAD_LEFT
          tile += $TILE_ROWS * 4;
      $LOAD_RIGHT
        };
        float sums[$OF_WARP_ROWS / 16][$OF_WARP_COLUMNS / 8][4] = {};
        const int steps = (int)((inner_end - inner_begin + $DEPTH - 1) / $DEPTH);
        for (int s = 0; s < $STAGES - 1; s++) {
          if (s < steps) {
            load(tiles[s], inner_begin + s * $DEPTH);
          }
          asm volatile("cp.async.commit_group;" ::: "memory");
        }
        for (int s = 0; s < steps; s++) {
          asm volatile("cp.async.wait_group %0;" :: "n"($STAGES - 2) : "memory");
          __syncthreads();
          const int next = s + $STAGES - 1;
          if (next < steps) {
            load(tiles[next % $STAGES], inner_begin + (long long)next * $DEPTH);
          }
          asm volatile("cp.async.commit_group;" ::: "memory");
          const Eight* tile = tiles[s % $STAGES];
          #pragma unroll
          for (int k = 0; k < $DEPTH; k += 16) {
            unsigned a[$OF_WARP_ROWS / 16][4];
            unsigned b[$OF_WARP_COLUMNS / 16][4];
            #pragma unroll
            for (int i = 0; i < $OF_WARP_ROWS / 16; i++) {
      $READ_LEFT
            }
            #pragma unroll
            for (int j = 0; j < $OF_WARP_COLUMNS / 16; j++) {
      $READ_RIGHT
            }
            #pragma unroll
            for (int i = 0; i < $OF_WARP_ROWS / 16; i++) {
              #pragma unroll
              for (int j = 0; j < $OF_WARP_COLUMNS / 8; j++) {
                add_product(sums[i][j], a[i][0], a[i][1], a[i][2], a[i][3], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
              }
            }
          }
        }
        $RESULT_TYPE* result = ($RESULT_TYPE*)$RESULT + group * $RESULT_GROUP;
        #pragma unroll
        for (int i = 0; i < $OF_WARP_ROWS / 16 * 2; i++) {
          const long long row = first_row + warp_row + i * 8 + lane / 4;
          if (row >= row_begin && row < row_end) {
            #pragma unroll
            for (int j = 0; j < $OF_WARP_COLUMNS / 8; j++) {
              const long long column = first_column + warp_column + j * 8 + lane % 4 * 2;
              const float one = sums[i / 2][j][i % 2 * 2];
              const float two = sums[i / 2][j][i % 2 * 2 + 1];
              $RESULT_TYPE* to = result + row * $RESULT_ROW + column * $RESULT_COLUMN;
      $WRITE
            }
          }
        }
      }
      """;

  /** Tiles of a group that has rows or columns of its own. */
  private static final String FIND_TILE =
      """
        long long start = 0;
        long long end = 0;
        int tile_of_group = blockIdx.x % $TILES;
        int group = 0;
        for (; group <= $GROUPS; group++) {
          // Behind the last group is one whose products have no terms.
          end = group < $GROUPS ? $END(group) : $SHARED;
          const int count = end > start ? (int)((end - (start & ~$SKEW) + $TILE_SHARED - 1) / $TILE_SHARED) : 0;
          if (tile_of_group < count) {
            break;
          }
          tile_of_group -= count;
          start = end;
        }
        if (group > $GROUPS) {
          return;
        }
        const long long inner_begin = 0;
        const long long inner_end = group < $GROUPS ? $INNER : 0;
      """;

  private static final String OF_ROWS =
      """
        const long long first_row = (start & ~$SKEW) + (long long)tile_of_group * $TILE_ROWS;
        const long long row_begin = start;
        const long long row_end = end;
        const long long first_column = (long long)(blockIdx.x / $TILES) * $TILE_COLUMNS;
        const long long column_begin = 0;
        const long long column_end = $COLUMNS;
      """;

  private static final String OF_COLUMNS =
      """
        const long long first_column = (start & ~$SKEW) + (long long)tile_of_group * $TILE_COLUMNS;
        const long long column_begin = start;
        const long long column_end = end;
        const long long first_row = (long long)(blockIdx.x / $TILES) * $TILE_ROWS;
        const long long row_begin = 0;
        const long long row_end = $ROWS;
      """;

  private static final String OF_INNER =
      """
        const int group = blockIdx.x / $TILES;
        const int tile_of_group = blockIdx.x % $TILES;
        const long long inner_begin = group == 0 ? 0 : $END(group - 1);
        const long long inner_end = $END(group);
        const long long first_row = (long long)(tile_of_group % $ROW_TILES) * $TILE_ROWS;
        const long long row_begin = 0;
        const long long row_end = $ROWS;
        const long long first_column = (long long)(tile_of_group / $ROW_TILES) * $TILE_COLUMNS;
        const long long column_begin = 0;
        const long long column_end = $COLUMNS;
      """;

  /** An operand whose inner elements are side by side; {@code $DIM} is the other dimension. */
  private static final String LOAD_BY_INNER =
      """
          for (int i = threadIdx.x; i < $TILE_LINES * 4; i += $THREADS) {
            const long long line = first_$DIM + i / 4;
            const long long at = k + i % 4 * 8;
            const int valid = line >= $DIM_begin && line < $DIM_end ? up_to(inner_end - at) : 0;
            copy_ahead(&tile[place<4>(i / 4, i % 4)], valid > 0 ? $OPERAND + line * $STRIDE + at : $OPERAND, 2 * valid);
          }
      """;

  /** An operand whose elements along {@code $DIM} are side by side. */
  private static final String LOAD_BY_LINE =
      """
          for (int i = threadIdx.x; i < $TILE_LINES * 4; i += $THREADS) {
            const long long line = k + i / ($TILE_LINES / 8);
            const long long at = first_$DIM + i % ($TILE_LINES / 8) * 8;
            const int valid = line < inner_end ? up_to($DIM_end - at) : 0;
            copy_ahead(&tile[place<$TILE_LINES / 8>(i / ($TILE_LINES / 8), i % ($TILE_LINES / 8))], valid > 0 ? $OPERAND + line * $STRIDE + at : $OPERAND, 2 * valid);
          }
      """;

  private static final String LEFT_BY_INNER =
      "        read_lines(a[i], &tile[place<4>(warp_row + i * 16 + lane % 16, k / 8 + lane /"
          + " 16)]);";
  private static final String LEFT_BY_LINE =
      "        read_columns(a[i], &tile[place<$TILE_ROWS / 8>(k + lane / 16 * 8 + lane % 8,"
          + " (warp_row + i * 16) / 8 + lane / 8 % 2)]);";
  private static final String RIGHT_BY_INNER =
      "        read_lines(b[j], &tile[$TILE_ROWS * 4 + place<4>(warp_column + j * 16 + lane / 16 *"
          + " 8 + lane % 8, k / 8 + lane / 8 % 2)]);";
  private static final String RIGHT_BY_LINE =
      "        read_columns(b[j], &tile[$TILE_ROWS * 4 + place<$TILE_COLUMNS / 8>(k + lane / 8 % 2"
          + " * 8 + lane % 8, (warp_column + j * 16) / 8 + lane / 16)]);";

  /** Two neighbours of 16 bits at once, where the group has both. */
  private static final String WRITE_PAIRS =
      """
              if (column >= column_begin && column + 1 < column_end) {
                *(unsigned*)to = (unsigned)$NARROW_ONE | (unsigned)$NARROW_TWO << 16;
                continue;
              }
      """;

  private static final String WRITE_ONE_BY_ONE =
      """
              if (column >= column_begin && column < column_end) {
                *to = $NARROW_ONE;
              }
              if (column + 1 >= column_begin && column + 1 < column_end) {
                to[$RESULT_COLUMN] = $NARROW_TWO;
              }
      """;

  private final GroupedProduct product;
  private final Tile tile;
  private final MemoryArguments memory = new MemoryArguments();
  private final int rank;

  private GroupedKernel(int rank, GroupedProduct product) {
    this.rank = rank;
    this.product = product;
    this.tile = tile(product);
  }

  private static Tile tile(GroupedProduct product) {
    boolean few = product.form() == Form.ROWS && product.rows() <= product.groups() * FLAT.rows();
    return few ? FLAT : LARGE;
  }

  static Launch launch(int rank, OpArguments arguments, GroupedProduct product) {
    return new GroupedKernel(rank, product).launch(arguments);
  }

  /** {@return the number of blocks: no group's sizes lead to more tiles} */
  static long blocks(GroupedProduct product) {
    var tile = tile(product);
    long across =
        switch (product.form()) {
          case ROWS -> Math.ceilDiv(product.columns(), Tile.COLUMNS);
          case COLUMNS -> Math.ceilDiv(product.rows(), tile.rows());
          case INNER -> product.groups();
        };
    return Math.multiplyExact(across, tiles(product, tile));
  }

  /** Tiles along what groups share, or of one group. */
  private static long tiles(GroupedProduct product, Tile tile) {
    long rows = Math.ceilDiv(product.rows(), tile.rows());
    long columns = Math.ceilDiv(product.columns(), Tile.COLUMNS);
    // Each group, and what is behind the last one, may begin and end within a tile.
    long partly = 2 * (product.groups() + 1);
    return switch (product.form()) {
      case ROWS -> rows + partly;
      case COLUMNS -> columns + partly;
      case INNER -> rows * columns;
    };
  }

  private Launch launch(OpArguments arguments) {
    var left = product.left();
    var right = product.right();
    var result = product.result();
    boolean bfloat = left.type().dtype() == DType.BF16;
    boolean byRows = product.form() == Form.ROWS;
    var find =
        switch (product.form()) {
          case ROWS -> FIND_TILE + OF_ROWS;
          case COLUMNS -> FIND_TILE + OF_COLUMNS;
          case INNER -> OF_INNER;
        };
    // Longer names first, as some begin like others.
    var text =
        TEXT.replace("$FIND\n", find)
            .replace("$LOAD_LEFT\n", load("row", left, 1, 0, product.isLeftByInner(), tile.rows()))
            .replace(
                "$LOAD_RIGHT\n",
                load("column", right, 0, 1, product.isRightByInner(), Tile.COLUMNS))
            .replace("$READ_LEFT", product.isLeftByInner() ? LEFT_BY_INNER : LEFT_BY_LINE)
            .replace("$READ_RIGHT", product.isRightByInner() ? RIGHT_BY_INNER : RIGHT_BY_LINE)
            .replace("$WRITE\n", (writesPairs() ? WRITE_PAIRS : "") + WRITE_ONE_BY_ONE)
            .replace("$NARROW_ONE", CTypes.narrow(result.type().dtype(), "one"))
            .replace("$NARROW_TWO", CTypes.narrow(result.type().dtype(), "two"))
            .replace("$LEFT_GROUP", number(GroupedProduct.groupStride(left)))
            .replace("$RIGHT_GROUP", number(GroupedProduct.groupStride(right)))
            .replace("$RESULT_GROUP", number(GroupedProduct.groupStride(result)))
            .replace("$RESULT_ROW", number(GroupedProduct.stride(result, 1)))
            .replace("$RESULT_COLUMN", number(GroupedProduct.stride(result, 0)))
            .replace("$RESULT_TYPE", CTypes.stored(result.type().dtype()))
            .replace("$RESULT", memory.pointer(Memory.of(rank, result)))
            .replace("$LEFT", memory.pointer(Memory.of(rank, left)))
            .replace("$RIGHT", memory.pointer(Memory.of(rank, right)))
            .replaceAll(
                "\\$END\\(([^)]*)\\)",
                "((const int*)%s)[($1) * %s]"
                    .formatted(
                        memory.pointer(Memory.of(rank, product.ends())),
                        GroupedProduct.stride(product.ends(), 0)))
            .replace("$TYPE", bfloat ? "bf16" : "f16")
            .replace("$STAGES", number(tile.stages()))
            .replace("$SKEW", isSharedSideBySide() ? number(CHUNK - 1) + "ll" : "0ll")
            .replace("$TILE_SHARED", number(byRows ? tile.rows() : Tile.COLUMNS))
            .replace("$TILE_ROWS", number(tile.rows()))
            .replace("$TILE_COLUMNS", number(Tile.COLUMNS))
            .replace("$TILES", number(tiles(product, tile)))
            .replace("$ROW_TILES", number(Math.ceilDiv(product.rows(), tile.rows())))
            .replace("$WARP_ROWS", number(tile.warpRows()))
            .replace("$OF_WARP_ROWS", number(tile.ofWarpRows()))
            .replace("$OF_WARP_COLUMNS", number(tile.ofWarpColumns()))
            .replace("$THREADS", number(THREADS))
            .replace("$DEPTH", number(DEPTH))
            .replace("$GROUPS", number(product.groups()))
            .replace("$SHARED", number(product.shared()))
            .replace("$INNER", number(product.inner()))
            .replace("$ROWS", number(product.rows()))
            .replace("$COLUMNS", number(product.columns()));
    return memory.launch(
        arguments.op().stream(),
        CTypes.PRELUDE + memory.struct() + text,
        blocks(product),
        (int) MAX_BLOCKS,
        THREADS,
        arguments.op().name());
  }

  /**
   * @param dim of the operand's lines, with the distance {@code outer} before the last
   */
  private static String load(
      String dim, TensorRef operand, int outer, int inner, boolean byInner, int lines) {
    return (byInner ? LOAD_BY_INNER : LOAD_BY_LINE)
        .replace("$DIM", dim)
        .replace("$OPERAND", dim.equals("row") ? "left" : "right")
        .replace("$TILE_LINES", number(lines))
        .replace("$STRIDE", number(GroupedProduct.stride(operand, byInner ? outer : inner)));
  }

  /** Whether chunks are of elements along the dimension that groups share. */
  private boolean isSharedSideBySide() {
    return switch (product.form()) {
      case ROWS -> !product.isLeftByInner();
      case COLUMNS -> !product.isRightByInner();
      case INNER -> false;
    };
  }

  /** Whether pairs of a tile's columns are in one aligned word of 32 bits. */
  private boolean writesPairs() {
    var result = product.result();
    return result.type().dtype().bytes() == 2
        && GroupedProduct.stride(result, 0) == 1
        && GroupedProduct.stride(result, 1) % 2 == 0
        && GroupedProduct.groupStride(result) % 2 == 0
        && result.offset() % 4 == 0
        && (product.form() != Form.COLUMNS || isSharedSideBySide());
  }

  private static String number(long value) {
    return Long.toString(value);
  }
}
