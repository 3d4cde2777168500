package dev.symplan.codegen.cuda;

import dev.symplan.codegen.cuda.BarrierCode.Edges;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.ReduceOp;

/**
 * An all_reduce, or a reduce_scatter, whose ranks read each other's operands between two meetings,
 * with ops behind it. While a block takes rows through the ops, it reads its next ones.
 */
final class EpilogueKernel {
  /** So many vectors in flight in each thread leave registers for the ops. */
  private static final int MOST_AHEAD = 8;

  private static final String PARTS =
      """

      union Words {
        uint4 words;
        Element elements[16 / sizeof(Element)];
      };

      /** One vector of each rank. */
      struct Parts {
        Words of[RANKS];
      };

      __device__ __forceinline__ Parts read(const Args& args, long long vector) {
        Parts parts;
      #pragma unroll
        for (int r = 0; r < RANKS; r++) {
          parts.of[r].words = read16(args.from[r] + source(vector * 16));
        }
        return parts;
      }

      __device__ __forceinline__ uint4 reduced(const Parts& parts) {
        Words result;
      #pragma unroll
        for (int e = 0; e < 16 / sizeof(Element); e++) {
          Sum sum = widen(parts.of[0].elements[e]);
      #pragma unroll
          for (int r = 1; r < RANKS; r++) {
            sum = combine(sum, widen(parts.of[r].elements[e]));
          }
          result.elements[e] = narrow(finish(sum));
        }
        return result.words;
      }
      """;

  private static final String KEEP =
      """

      __device__ __forceinline__ bool has(long long first, int at) {
        return at < TOGETHER * ROW && first * ROW + at < (long long)ROWS * ROW;
      }

      __device__ __forceinline__ uint4 kept(const Args& args, long long vector, const Parts& parts) {
        uint4 words = reduced(parts);
        if (STORED) {
          *(uint4*)(args.to + vector * 16) = words;
        }
        return words;
      }
      """;

  private static final String AHEAD =
      """

      __device__ __forceinline__ void read_ahead(const Args& args, long long first, Parts* ahead) {
      #pragma unroll
        for (int k = 0; k < AHEAD; k++) {
          int at = threadIdx.x + k * THREADS;
          if (has(first, at)) {
            ahead[k] = read(args, first * ROW + at);
          }
        }
      }
      """;

  private static final String BEGIN_AHEAD =
      """
        Parts ahead[AHEAD];
        read_ahead(args, (long long)blockIdx.x * TOGETHER, ahead);
      """;

  private static final String HOLD_AHEAD =
      """
          #pragma unroll
          for (int k = 0; k < AHEAD; k++) {
            int at = threadIdx.x + k * THREADS;
            if (has(first, at)) {
              held[at] = kept(args, first * ROW + at, ahead[k]);
            }
          }
      """;

  private static final String NEXT_AHEAD =
      """
          read_ahead(args, first + (long long)gridDim.x * TOGETHER, ahead);
      """;

  private static final String HOLD =
      """
          for (int at = threadIdx.x; has(first, at); at += THREADS) {
            held[at] = kept(args, first * ROW + at, read(args, first * ROW + at));
          }
      """;

  /** The ranks' blocks of one number reduce the rows that have the same numbers in all slices. */
  private static final String REDUCE_SLICE =
      """
        for (long long turn = blockIdx.x; turn < PER; turn += gridDim.x) {
          for (int at = threadIdx.x; at < TOGETHER * ROW; at += THREADS) {
            long long vector = turn * (TOGETHER * ROW) + at;
            uint4 words = reduced(read(args, vector));
      #pragma unroll
            for (int t = 0; t < RANKS; t++) {
              write16(args.to[t] + vector * 16, words);
            }
          }
        }
        meet(args, ++meeting, true);
      """;

  private static final String HOLD_STORED =
      """
          for (int at = threadIdx.x; at < TOGETHER * ROW; at += THREADS) {
            held[at] = read16(args.whole + (first * ROW + at) * 16);
          }
      """;

  private EpilogueKernel() {}

  /**
   * {@return the kernel in which each rank reduces a slice for all, which then meet}
   *
   * @param rows the work on the rows of all slices
   * @param layout how those of a slice lie in each operand
   * @param start whether the ranks meet before they read, too
   * @param more declarations of other arguments
   */
  static Kernel ofSlices(
      int ranks,
      HeldRows rows,
      RowsCode layout,
      DType dtype,
      ReduceOp reduceOp,
      boolean start,
      String more) {
    return new Kernel(
        BarrierCode.define("PER", rows.rows() / ranks / rows.together())
            + new Edges(start, false).define(true)
            + BarrierCode.args(
                ranks,
                rows.threads(),
                "  const char* from[RANKS];\n  char* to[RANKS];\n  const char* whole;\n" + more)
            + Arithmetic.of(dtype, reduceOp, ranks)
            + rows.definitions()
            + layout.text()
            + PARTS
            + BarrierCode.between(REDUCE_SLICE + rows.loopOverSlices(HOLD_STORED)));
  }

  /**
   * {@return the kernel}
   *
   * @param rows the work on the rows that are reduced
   * @param layout how they lie in each operand
   * @param stored whether that is stored, too
   * @param more declarations of other arguments
   */
  static Kernel of(
      int ranks,
      HeldRows rows,
      RowsCode layout,
      DType dtype,
      ReduceOp reduceOp,
      Edges edges,
      boolean stored,
      String more) {
    boolean ahead = rows.vectorsPerThread() * ranks <= MOST_AHEAD;
    return new Kernel(
        BarrierCode.define("STORED", stored)
            + BarrierCode.define("AHEAD", rows.vectorsPerThread())
            + edges.define(false)
            + BarrierCode.args(
                ranks, rows.threads(), "  const char* from[RANKS];\n  char* to;\n" + more)
            + Arithmetic.of(dtype, reduceOp, ranks)
            + rows.definitions()
            + layout.text()
            + PARTS
            + KEEP
            + (ahead ? AHEAD : "")
            + BarrierCode.between(
                ahead ? BEGIN_AHEAD + rows.loop(HOLD_AHEAD, NEXT_AHEAD) : rows.loop(HOLD, "")));
  }
}
