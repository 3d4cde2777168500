package dev.symplan.codegen.cuda;

import dev.symplan.ir.DType;

/**
 * The kernels that reach into peers' symmetric memory.
 *
 * <p>Blocks meet, not ranks: block {@code b} of a rank raises a flag at each peer's block {@code b}
 * and waits for theirs. That suffices, as each kernel is behind all earlier work of its stream, and
 * ends when its last block does. Flags only ever rise, so that nobody has to lower them: the scheme
 * of vLLM's {@code custom_all_reduce.cuh}.
 */
final class CollectiveKernels {

  /** How peers' memory is touched in between two meetings. */
  enum Direction {
    /** Peers' memory is read; their flags only say that they are there. */
    PULL,
    /** Peers' memory is written; flags are raised behind the data. */
    PUSH
  }

  private static final String MEET =
      """

      __device__ __forceinline__ void raise(unsigned* flag, unsigned value, bool behind_data) {
        if (behind_data) {
          asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
        } else {
          asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
        }
      }

      __device__ __forceinline__ unsigned look(const unsigned* flag, bool behind_data) {
        unsigned value;
        if (behind_data) {
          asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
        } else {
          asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
        }
        return value;
      }

      __device__ __forceinline__ long long nanos() {
        long long now;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        return now;
      }

      __device__ __noinline__ void give_up(const Args& args) {
        *(volatile unsigned*)args.failure = 1;
        for (int r = 0; r < RANKS; r++) {
          raise(args.flags[r] + GAVE_UP, 1, false);
        }
      }

      __device__ __forceinline__ void meet(const Args& args, unsigned meeting, bool behind_data) {
        __syncthreads();
        if (threadIdx.x < RANKS) {
          int peer = threadIdx.x;
          raise(args.flags[peer] + blockIdx.x * RANKS + args.self, meeting, behind_data);
          const unsigned* flag = args.flags[args.self] + blockIdx.x * RANKS + peer;
          long long end = 0;
          for (unsigned looks = 1; (int)(look(flag, behind_data) - meeting) < 0; looks++) {
            if (looks % 4096 == 0) {
              long long now = nanos();
              end = end == 0 ? now + args.patience : end;
              if (now > end || look(args.flags[args.self] + GAVE_UP, false) != 0) {
                give_up(args);
                break;
              }
            }
          }
        }
        __syncthreads();
      }

      __device__ __forceinline__ uint4 read16(const char* from) {
        uint4 value;
        asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                     : "l"(from)
                     : "memory");
        return value;
      }

      __device__ __forceinline__ void write16(char* to, uint4 value) {
        asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(value.x),
                     "r"(value.y), "r"(value.z), "r"(value.w)
                     : "memory");
      }
      """;

  private static final String COMBINE =
      """

      union Vector {
        uint4 words;
        Element elements[16 / sizeof(Element)];
      };

      template <int UNROLL>
      __device__ __forceinline__ void vectors(const Args& args, long long at, long long step) {
        Vector read[UNROLL][SOURCES];
      #pragma unroll
        for (int u = 0; u < UNROLL; u++) {
      #pragma unroll
          for (int s = 0; s < SOURCES; s++) {
            read[u][s].words = read16(args.from[s] + (at + u * step) * 16);
          }
        }
      #pragma unroll
        for (int u = 0; u < UNROLL; u++) {
          Vector result = read[u][0];
          if (SOURCES > 1) {
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
            write16(args.to[t] + (at + u * step) * 16, result.words);
          }
        }
      }

      extern "C" __global__ void __launch_bounds__(THREADS) symplan_kernel(const __grid_constant__ Args args) {
        unsigned meeting = args.meetings[blockIdx.x];
        if (START) {
          meet(args, ++meeting, false);
        }
        long long step = (long long)gridDim.x * THREADS;
        long long at = (long long)blockIdx.x * THREADS + threadIdx.x;
        for (; at + (UNROLLED - 1) * step < args.vectors; at += UNROLLED * step) {
          vectors<UNROLLED>(args, at, step);
        }
        for (; at < args.vectors; at += step) {
          vectors<1>(args, at, step);
        }
        long long first = args.vectors * (16 / (long long)sizeof(Element));
        for (long long e = first + (long long)blockIdx.x * THREADS + threadIdx.x; e < args.elements; e += step) {
          Element value = *((const volatile Element*)args.from[0] + e);
          if (SOURCES > 1) {
            Sum sum = widen(value);
            for (int s = 1; s < SOURCES; s++) {
              sum = combine(sum, widen(*((const volatile Element*)args.from[s] + e)));
            }
            value = narrow(finish(sum));
          }
          for (int t = 0; t < TARGETS; t++) {
            *((volatile Element*)args.to[t] + e) = value;
          }
        }
        if (END) {
          meet(args, ++meeting, PUSHES);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
          args.meetings[blockIdx.x] = meeting;
        }
      }
      """;

  private static final String MOVE =
      """

      extern "C" __global__ void __launch_bounds__(THREADS) symplan_kernel(const __grid_constant__ Args args) {
        unsigned meeting = args.meetings[blockIdx.x];
        if (START) {
          meet(args, ++meeting, false);
        }
        int piece = blockIdx.x % PIECES;
        const char* from = args.from[piece];
        char* to = args.to[piece];
        long long vectors = args.vectors[piece];
        long long step = (long long)(gridDim.x / PIECES) * THREADS;
        long long at = (long long)(blockIdx.x / PIECES) * THREADS + threadIdx.x;
        for (; at + 3 * step < vectors; at += 4 * step) {
          uint4 read[4];
      #pragma unroll
          for (int u = 0; u < 4; u++) {
            read[u] = read16(from + (at + u * step) * 16);
          }
      #pragma unroll
          for (int u = 0; u < 4; u++) {
            write16(to + (at + u * step) * 16, read[u]);
          }
        }
        for (; at < vectors; at += step) {
          write16(to + at * 16, read16(from + at * 16));
        }
        long long units = args.units[piece];
        long long first = vectors * (16 / (long long)sizeof(Unit));
        for (long long u = first + (long long)(blockIdx.x / PIECES) * THREADS + threadIdx.x; u < units; u += step) {
          *((volatile Unit*)to + u) = *((const volatile Unit*)from + u);
        }
        if (END) {
          meet(args, ++meeting, PUSHES);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
          args.meetings[blockIdx.x] = meeting;
        }
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

  private static String define(String name, Object value) {
    return "#define %s %s\n".formatted(name, value);
  }

  private static String meeting(int ranks, int threads, String moreArgs) {
    return define("RANKS", ranks)
        + define("THREADS", threads)
        + define("GAVE_UP", DeviceProgram.FLAGS - 1)
        + """

        struct Args {
          unsigned* flags[RANKS];
          unsigned* meetings;
          unsigned* failure;
          long long patience;
          long long self;
        """
        + moreArgs
        + "};\n\n"
        + MEET;
  }

  /**
   * Elements of {@code sources} places, combined in this order, to {@code targets} places.
   *
   * @param reduceOp empty for one source, which is copied
   */
  static Kernel combine(
      int ranks,
      int threads,
      int sources,
      int targets,
      int unrolled,
      DType dtype,
      String reduceOp,
      boolean start,
      boolean end,
      Direction direction) {
    return new Kernel(
        define("SOURCES", sources)
            + define("TARGETS", targets)
            + define("UNROLLED", unrolled)
            + define("START", start)
            + define("END", end)
            + define("PUSHES", direction == Direction.PUSH)
            + meeting(
                ranks,
                threads,
                """
                  const char* from[SOURCES];
                  char* to[TARGETS];
                  long long vectors;
                  long long elements;
                """)
            + (sources == 1 ? copied(dtype.bytes()) : arithmetic(dtype, reduceOp, sources))
            + COMBINE);
  }

  private static String copied(int bytes) {
    return """

    typedef %s Element;
    typedef Element Sum;
    __device__ __forceinline__ Sum widen(Element e) { return e; }
    __device__ __forceinline__ Element narrow(Sum s) { return s; }
    __device__ __forceinline__ Sum combine(Sum a, Sum) { return a; }
    __device__ __forceinline__ Sum finish(Sum s) { return s; }
    """
        .formatted(CTypes.bits(Math.min(8, bytes)));
  }

  /** In the order of the sources, rounded once at the end: what the host backend does. */
  private static String arithmetic(DType dtype, String reduceOp, int sources) {
    boolean floats = dtype.isFloat();
    String combined =
        switch (reduceOp) {
          case "sum", "avg" -> "a + b";
          case "product" -> "a * b";
          case "min" -> floats ? "a != a ? a : b != b ? b : fmin(a, b)" : "a < b ? a : b";
          case "max" -> floats ? "a != a ? a : b != b ? b : fmax(a, b)" : "a > b ? a : b";
          case "band" -> "a & b";
          case "bor" -> "a | b";
          case "bxor" -> "a ^ b";
          default -> throw new IllegalArgumentException(reduceOp);
        };
    return CTypes.PRELUDE
        + """

        typedef %s Element;
        typedef %s Sum;
        __device__ __forceinline__ Sum widen(Element e) { return %s; }
        __device__ __forceinline__ Element narrow(Sum s) { return %s; }
        __device__ __forceinline__ Sum combine(Sum a, Sum b) { return %s; }
        __device__ __forceinline__ Sum finish(Sum s) { return %s; }
        """
            .formatted(
                CTypes.stored(dtype),
                CTypes.computed(dtype),
                CTypes.widen(dtype, "e"),
                CTypes.narrow(dtype, "s"),
                combined,
                reduceOp.equals("avg") ? "s / " + sources : "s");
  }

  /**
   * Copies {@code pieces}, each from one place to another; block {@code b} does piece {@code b %
   * pieces}.
   */
  static Kernel move(
      int ranks,
      int threads,
      int pieces,
      int unitBytes,
      boolean start,
      boolean end,
      Direction direction) {
    return new Kernel(
        define("PIECES", pieces)
            + define("START", start)
            + define("END", end)
            + define("PUSHES", direction == Direction.PUSH)
            + meeting(
                ranks,
                threads,
                """
                  const char* from[PIECES];
                  char* to[PIECES];
                  long long vectors[PIECES];
                  long long units[PIECES];
                """)
            + "\ntypedef %s Unit;\n".formatted(CTypes.bits(Math.min(8, unitBytes)))
            + MOVE);
  }

  /** The ranks meet, and nothing else: what copies by the copy engines stand between. */
  static Kernel barrier(int ranks) {
    return new Kernel(meeting(ranks, 32, "") + BARRIER);
  }
}
