package dev.symplan.codegen.cuda;

/**
 * The code by which ranks meet inside kernels, and read and write each other's memory.
 *
 * <p>Blocks meet, not ranks: block {@code b} of a rank raises a flag at each peer's block {@code b}
 * and waits for theirs. That suffices, as each kernel is after all earlier work of its stream, and
 * ends when its last block does. Flags only ever rise, so no rank needs to lower them: the scheme
 * of vLLM's {@code custom_all_reduce.cuh}.
 *
 * <p>No block waits for ever: one that has waited too long gives up and sets a flag for all.
 */
final class BarrierCode {
  private static final String FUNCTIONS =
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

      __device__ __noinline__ void give_up(const Args& args, int peer) {
        *(volatile unsigned*)args.failure = FIRST_PEER + peer;
        for (int r = 0; r < RANKS; r++) {
          raise(args.flags[r] + GAVE_UP, 1, false);
        }
      }

      __device__ __noinline__ bool is_over(const Args& args, long long* end, int peer) {
        long long now = nanos();
        *end = *end == 0 ? now + args.timeout : *end;
        if (now <= *end && look(args.flags[args.self] + GAVE_UP, false) == 0) {
          return false;
        }
        give_up(args, peer);
        return true;
      }

      __device__ __forceinline__ void meet(const Args& args, unsigned meeting, bool behind_data) {
        __syncthreads();
        if (threadIdx.x < RANKS) {
          int peer = threadIdx.x;
          raise(args.flags[peer] + blockIdx.x * RANKS + args.self, meeting, behind_data);
          const unsigned* flag = args.flags[args.self] + blockIdx.x * RANKS + peer;
          long long end = 0;
          for (unsigned looks = 1; (int)(look(flag, behind_data) - meeting) < 0; looks++) {
            if (looks % 4096 == 0 && is_over(args, &end, peer)) {
              break;
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

  private static final String BEGIN =
      """

      extern "C" __global__ void __launch_bounds__(THREADS) symplan_kernel(const __grid_constant__ Args args) {
        unsigned meeting = args.meetings[blockIdx.x];
        if (START) {
          meet(args, ++meeting, false);
        }
      """;

  private static final String END =
      """
        if (END) {
          meet(args, ++meeting, PUSHES);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
          args.meetings[blockIdx.x] = meeting;
        }
      }
      """;

  private BarrierCode() {}

  /** Whether a kernel meets its peers before it touches their memory, and after. */
  record Edges(boolean start, boolean end) {

    /**
     * {@return the definitions that {@link #between} needs}
     *
     * @param pushes whether peers' memory is written, so that flags are raised after the data
     */
    String define(boolean pushes) {
      return BarrierCode.define("START", start)
          + BarrierCode.define("END", end)
          + BarrierCode.define("PUSHES", pushes);
    }
  }

  /** {@return a kernel that does something between its two meetings} */
  static String between(String statements) {
    return BEGIN + statements + END;
  }

  static String define(String name, Object value) {
    return "#define %s %s\n".formatted(name, value);
  }

  /**
   * {@return the struct of arguments, which begins with what ranks meet by, and the functions}
   *
   * @param more declarations of the other arguments
   */
  static String args(int ranks, int threads, String more) {
    return define("RANKS", ranks)
        + define("THREADS", threads)
        + define("GAVE_UP", DeviceProgram.FLAGS - 1)
        + define("FIRST_PEER", DeviceProgram.FIRST_PEER)
        + """

        struct Args {
          unsigned* flags[RANKS];
          unsigned* meetings;
          unsigned* failure;
          long long timeout;
          long long self;
        """
        + more
        + "};\n\n"
        + FUNCTIONS;
  }
}
