package dev.symplan.codegen.cuda;

import dev.symplan.codegen.cuda.BarrierCode.Edges;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.ReduceOp;
import java.util.Optional;

/** The kernels that reach into peers' tensors between two meetings. */
final class CollectiveKernels {

  /** How peers' memory is touched in between two meetings. */
  enum Direction {
    /** Peers' memory is read; their flags only say that they are there. */
    PULL,
    /** Peers' memory is written; flags are raised after the data. */
    PUSH
  }

  private static final String VECTORS =
      """

      union Vector {
        uint4 words;
        Element elements[16 / sizeof(Element)];
      };

      union Combined {
        uint4 words[WORDS];
        Made elements[16 / sizeof(Element)];
      };

      template <int UNROLL>
      __device__ __forceinline__ void vectors(const Tensor& tensor, long long at, long long step) {
        Vector read[UNROLL][SOURCES];
      #pragma unroll
        for (int u = 0; u < UNROLL; u++) {
      #pragma unroll
          for (int s = 0; s < SOURCES; s++) {
            read[u][s].words = read16(tensor.from[s] + source((at + u * step) * 16));
          }
        }
      #pragma unroll
        for (int u = 0; u < UNROLL; u++) {
          Combined result;
          if (SOURCES == 1) {
            result.words[0] = read[u][0].words;
          } else {
      #pragma unroll
            for (int e = 0; e < 16 / sizeof(Element); e++) {
              Sum sum = widen(read[u][0].elements[e]);
      #pragma unroll
              for (int s = 1; s < SOURCES; s++) {
                sum = combine(sum, widen(read[u][s].elements[e]));
              }
              result.elements[e] = narrow(finish(sum));
            }
          }
      #pragma unroll
          for (int t = 0; t < TARGETS; t++) {
      #pragma unroll
            for (int w = 0; w < WORDS; w++) {
              write16(tensor.to[t] + target((at + u * step) * (16 * WORDS) + w * 16), result.words[w]);
            }
          }
        }
      }
      """;

  private static final String COMBINE =
      """
          long long at = thread;
          for (; at + (UNROLLED - 1) * step < tensor.vectors; at += UNROLLED * step) {
            vectors<UNROLLED>(tensor, at, step);
          }
          for (; at < tensor.vectors; at += step) {
            vectors<1>(tensor, at, step);
          }
      """;

  /**
   * The bytes that do not fill 16, for {@code vectors} that are done: from {@code SOURCES}
   * addresses to {@code TARGETS} addresses of a {@code tensor}, by the {@code thread} of this
   * number.
   */
  static final String REST =
      """
          long long first = tensor.vectors * (16 / (long long)sizeof(Element));
          for (long long e = first + thread; e < tensor.elements; e += step) {
            Sum sum = widen(*(const volatile Element*)(tensor.from[0] + source(e * sizeof(Element))));
            for (int s = 1; s < SOURCES; s++) {
              sum = combine(sum, widen(*(const volatile Element*)(tensor.from[s] + source(e * sizeof(Element)))));
            }
            Made value = narrow(SOURCES == 1 ? sum : finish(sum));
            for (int t = 0; t < TARGETS; t++) {
              *(volatile Made*)(tensor.to[t] + target(e * sizeof(Made))) = value;
            }
          }
      """;

  /** One thread's share of a copy: threads take turns by vectors, then by what fills none. */
  private static final String COPY =
      """

      template <typename Unit>
      __device__ __forceinline__ void copy(const char* from, char* to, long long vectors, long long units,
                                           long long thread, long long threads) {
        long long at = thread;
        for (; at + 3 * threads < vectors; at += 4 * threads) {
          uint4 read[4];
      #pragma unroll
          for (int u = 0; u < 4; u++) {
            read[u] = read16(from + source((at + u * threads) * 16));
          }
      #pragma unroll
          for (int u = 0; u < 4; u++) {
            write16(to + target((at + u * threads) * 16), read[u]);
          }
        }
        for (; at < vectors; at += threads) {
          write16(to + target(at * 16), read16(from + source(at * 16)));
        }
        for (long long u = vectors * (16 / (long long)sizeof(Unit)) + thread; u < units; u += threads) {
          *(volatile Unit*)(to + target(u * sizeof(Unit))) = *(const volatile Unit*)(from + source(u * sizeof(Unit)));
        }
      }
      """;

  private static final String MOVE =
      """
        int piece = blockIdx.x % PIECES;
        copy<Unit>(args.from[piece], args.to[piece], args.vectors[piece], args.units[piece],
                   (long long)(blockIdx.x / PIECES) * THREADS + threadIdx.x,
                   (long long)(gridDim.x / PIECES) * THREADS);
      """;

  /** One thread's share of a tensor that is filled with zeros, as of a copy. */
  private static final String CLEAR =
      """

      template <typename Unit>
      __device__ __forceinline__ void clear(char* to, long long vectors, long long units, long long thread,
                                            long long threads) {
        for (long long v = thread; v < vectors; v += threads) {
          write16(to + v * 16, uint4{0, 0, 0, 0});
        }
        for (long long u = vectors * (16 / (long long)sizeof(Unit)) + thread; u < units; u += threads) {
          *(volatile Unit*)(to + u * sizeof(Unit)) = 0;
        }
      }
      """;

  private static final String CLEAR_ALL =
      """
        clear<Unit>(args.cleared, args.cleared_vectors, args.cleared_units,
                    (long long)blockIdx.x * THREADS + threadIdx.x, (long long)gridDim.x * THREADS);
      """;

  /** Each thread copies on what it has combined itself, so that it need not wait for others. */
  private static final String SPREAD =
      """
          for (int p = TARGETS; p < ADDRESSES; p++) {
            copy<Element>(tensor.to[0], tensor.to[p], tensor.vectors, tensor.elements, thread, step);
          }
      """;

  /**
   * Another block begins with each tensor, so that those of short tensors are not the same ones.
   */
  private static final String EACH =
      """
        long long step = (long long)gridDim.x * THREADS;
        unsigned turn = 0;
        for (int number = 0; number < TENSORS; number++) {
          const Tensor& tensor = args.tensors[number];
          long long thread = (long long)((blockIdx.x + gridDim.x - turn) % gridDim.x) * THREADS + threadIdx.x;
      """;

  private static final String NEXT =
      """
          turn = (turn + tensor.vectors / THREADS + 1) % gridDim.x;
        }
      """;

  private static final String BARRIER =
      """

      extern "C" __global__ void __launch_bounds__(THREADS) symplan_kernel(const __grid_constant__ Args args) {
        unsigned meeting = args.meetings[blockIdx.x] + 1;
        meet(args, meeting, true);
        if (threadIdx.x == 0) {
          args.meetings[blockIdx.x] = meeting;
        }
      }
      """;

  private CollectiveKernels() {}

  /**
   * For each of several tensors, elements of {@code sources} addresses, combined in this order, to
   * {@code addresses}.
   *
   * @param targets the number of addresses to which the combined elements are stored at once; the
   *     others get copies from the first of them, one after the other
   * @param made the type of the elements in the result, as wide as {@code dtype} or wider
   * @param reduceOp empty for one source, which is copied
   * @param rows how they lie; in one row where there are more addresses than targets
   */
  static Kernel combine(
      int ranks,
      int tensors,
      int sources,
      int targets,
      int addresses,
      int unrolled,
      DType dtype,
      DType made,
      Optional<ReduceOp> reduceOp,
      RowsCode rows,
      Edges edges,
      Direction direction) {
    var each = COMBINE + REST;
    return new Kernel(
        BarrierCode.define("TENSORS", tensors)
            + BarrierCode.define("SOURCES", sources)
            + BarrierCode.define("TARGETS", targets)
            + BarrierCode.define("ADDRESSES", addresses)
            + BarrierCode.define("UNROLLED", unrolled)
            + BarrierCode.define("WORDS", made.bytes() / dtype.bytes())
            + edges.define(direction == Direction.PUSH)
            + """

            struct Tensor {
              const char* from[SOURCES];
              char* to[ADDRESSES];
              long long vectors;
              long long elements;
            };
            """
            + BarrierCode.args(ranks, CollectiveAddresses.THREADS, "  Tensor tensors[TENSORS];\n")
            + (sources == 1
                ? Arithmetic.none(dtype.bytes())
                : Arithmetic.of(dtype, made, reduceOp.orElseThrow(), sources))
            + rows.text()
            + VECTORS
            + (addresses > targets
                ? COPY + BarrierCode.between(EACH + each + SPREAD + NEXT)
                : BarrierCode.between(EACH + each + NEXT)));
  }

  /**
   * Copies {@code pieces}, each from one address to another; block {@code b} does piece {@code b %
   * pieces}.
   *
   * @param clears whether it also fills a tensor with zeros
   */
  static Kernel move(
      int ranks,
      int pieces,
      int unitBytes,
      RowsCode rows,
      Edges edges,
      Direction direction,
      boolean clears) {
    return new Kernel(
        BarrierCode.define("PIECES", pieces)
            + edges.define(direction == Direction.PUSH)
            + BarrierCode.args(
                ranks,
                CollectiveAddresses.THREADS,
                """
                  const char* from[PIECES];
                  char* to[PIECES];
                  long long vectors[PIECES];
                  long long units[PIECES];
                """
                    + (clears
                        ? """
                          char* cleared;
                          long long cleared_vectors;
                          long long cleared_units;
                        """
                        : ""))
            + "\ntypedef %s Unit;\n".formatted(CTypes.bits(Math.min(8, unitBytes)))
            + rows.text()
            + COPY
            + (clears ? CLEAR : "")
            + BarrierCode.between(clears ? MOVE + CLEAR_ALL : MOVE));
  }

  /** Fills a tensor with zeros; nobody meets. */
  static Kernel clear(int unitBytes) {
    return new Kernel(
        BarrierCode.define("THREADS", CollectiveAddresses.THREADS)
            + """

            struct Args {
              char* cleared;
              long long cleared_vectors;
              long long cleared_units;
            };

            __device__ __forceinline__ void write16(char* to, uint4 value) {
              *(uint4*)to = value;
            }
            """
            + "\ntypedef %s Unit;\n".formatted(CTypes.bits(unitBytes))
            + CLEAR
            + """

            extern "C" __global__ void __launch_bounds__(THREADS) symplan_kernel(const __grid_constant__ Args args) {
            """
            + CLEAR_ALL
            + "}\n");
  }

  /** The ranks meet, and nothing else: what copies by the copy engines stand between. */
  static Kernel barrier(int ranks) {
    return new Kernel(BarrierCode.args(ranks, 32, "") + BARRIER);
  }
}
