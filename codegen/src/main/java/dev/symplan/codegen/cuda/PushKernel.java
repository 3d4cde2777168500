package dev.symplan.codegen.cuda;

import dev.symplan.ir.DType;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Workspace;

/**
 * An all_reduce through {@link Workspace}s. Each thread sends all its packets before it looks for
 * any, so that none waits for a block that has not begun.
 *
 * <p>Every packet's words say by themselves that they are there, so nothing needs fences. Empty
 * slots are stored by the kernel that took what was there; its end, and the next kernel's packets,
 * come before anything that a peer may send to them.
 *
 * <p>A count in memory gives the half of the workspace: each kernel raises it by {@link #TICKS},
 * its blocks together, as kernels of other sizes have more or fewer of them.
 */
final class PushKernel {

  /** The most blocks, and what one kernel adds to the count; a power of two. */
  static final int TICKS = 128;

  private static final String PACKETS =
      """

      union Packet {
        uint4 words;
        unsigned word[4];
        Element elements[16 / sizeof(Element)];
      };

      __device__ __forceinline__ Packet load(const Args& args, long long v) {
        Packet x;
        if (v < args.vectors) {
          x.words = *(const uint4*)(args.from + source(v * 16));
        } else {
          const int per = 16 / sizeof(Element);
          x.words = make_uint4(0, 0, 0, 0);
      #pragma unroll
          for (int e = 0; e < per; e++) {
            if (v * per + e < args.elements) {
              x.elements[e] = *(const Element*)(args.from + source(v * 16 + e * sizeof(Element)));
            }
          }
        }
        return x;
      }

      __device__ __forceinline__ void store(const Args& args, long long v, Packet x) {
        if (v < args.vectors) {
          *(uint4*)(args.to + target(v * 16)) = x.words;
        } else {
          const int per = 16 / sizeof(Element);
      #pragma unroll
          for (int e = 0; e < per; e++) {
            if (v * per + e < args.elements) {
              *(Element*)(args.to + target(v * 16 + e * sizeof(Element))) = x.elements[e];
            }
          }
        }
      }
      """;

  /** A word of set bits is not a number; one that is sent becomes another. */
  private static final String SPARE_BITS =
      """

      __device__ __forceinline__ Packet full(Packet x) {
      #pragma unroll
        for (int i = 0; i < 4; i++) {
          x.word[i] = x.word[i] == EMPTY ? EMPTY - 1 : x.word[i];
        }
        return x;
      }

      __device__ __forceinline__ void send(char* slot, long long i, Packet x) {
        write16(slot + i * 16, x.words);
      }

      __device__ __forceinline__ bool take(const char* slot, long long i, Packet* x) {
        x->words = read16(slot + i * 16);
        return x->word[0] != EMPTY && x->word[1] != EMPTY && x->word[2] != EMPTY && x->word[3] != EMPTY;
      }

      __device__ __forceinline__ void clear(char* slot, long long i) {
        write16(slot + i * 16, make_uint4(EMPTY, EMPTY, EMPTY, EMPTY));
      }
      """;

  /** Each word of data is in one of 8 bytes, which are stored at once, after one that is 0. */
  private static final String FLAGS =
      """

      __device__ __forceinline__ Packet full(Packet x) { return x; }

      __device__ __forceinline__ void send8(char* to, unsigned long long a, unsigned long long b) {
        asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(a), "l"(b) : "memory");
      }

      __device__ __forceinline__ void send(char* slot, long long i, Packet x) {
        send8(slot + i * 32, x.word[0], x.word[1]);
        send8(slot + i * 32 + 16, x.word[2], x.word[3]);
      }

      __device__ __forceinline__ bool take(const char* slot, long long i, Packet* x) {
        unsigned long long w[4];
        asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(w[0]), "=l"(w[1]) : "l"(slot + i * 32) : "memory");
        asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(w[2]), "=l"(w[3]) : "l"(slot + i * 32 + 16) : "memory");
        x->words = make_uint4(w[0], w[1], w[2], w[3]);
        return ((w[0] | w[1] | w[2] | w[3]) >> 32) == 0;
      }

      __device__ __forceinline__ void clear(char* slot, long long i) {
        send8(slot + i * 32, ~0ull, ~0ull);
        send8(slot + i * 32 + 16, ~0ull, ~0ull);
      }
      """;

  private static final String ROUNDS =
      """

      __device__ __forceinline__ void send_to_all(const Args& args, int round, long long half, long long i, Packet x) {
      #pragma unroll
        for (int p = 1; p < RANKS; p++) {
          send(args.sends[round][((int)args.self + p) % RANKS] + half, i, x);
        }
      }

      __device__ __forceinline__ int first_missing(const bool* here) {
        int first = 0;
      #pragma unroll
        for (int r = RANKS - 1; r >= 0; r--) {
          first = here[r] ? first : r;
        }
        return first;
      }

      __device__ __forceinline__ void receive(
          const Args& args, int round, long long half, long long i, const bool* wanted, Packet* got) {
        bool here[RANKS];
      #pragma unroll
        for (int r = 0; r < RANKS; r++) {
          here[r] = !wanted[r];
        }
        long long end = 0;
        for (unsigned looks = 1;; looks++) {
      #pragma unroll
          for (int r = 0; r < RANKS; r++) {
            if (!here[r]) {
              here[r] = take(args.slots[round][r] + half, i, &got[r]);
            }
          }
          bool all = true;
      #pragma unroll
          for (int r = 0; r < RANKS; r++) {
            all = all && here[r];
          }
          if (all || (looks % 4096 == 0 && is_over(args, &end, first_missing(here)))) {
            break;
          }
        }
      #pragma unroll
        for (int r = 0; r < RANKS; r++) {
          if (wanted[r]) {
            clear(args.slots[round][r] + half, i);
          }
        }
      }

      __device__ __forceinline__ Packet reduce(const Args& args, long long half, long long i, long long v) {
        bool wanted[RANKS];
        Packet got[RANKS];
      #pragma unroll
        for (int r = 0; r < RANKS; r++) {
          wanted[r] = r != args.self;
        }
        receive(args, 0, half, i, wanted, got);
        Packet mine = full(load(args, v));
      #pragma unroll
        for (int r = 0; r < RANKS; r++) {
          if (r == args.self) {
            got[r] = mine;
          }
        }
        Packet result;
      #pragma unroll
        for (int e = 0; e < 16 / sizeof(Element); e++) {
          Sum sum = widen(got[0].elements[e]);
      #pragma unroll
          for (int r = 1; r < RANKS; r++) {
            sum = combine(sum, widen(got[r].elements[e]));
          }
          result.elements[e] = narrow(finish(sum));
        }
        return result;
      }

      extern "C" __global__ void __launch_bounds__(THREADS) symplan_kernel(const __grid_constant__ Args args) {
        unsigned* count = args.meetings + PUSHES;
        long long half = *(volatile unsigned*)count / TICKS % 2 * args.half;
        long long first = (long long)blockIdx.x * THREADS + threadIdx.x;
        long long step = (long long)gridDim.x * THREADS;
      """;

  private static final String ONE_SHOT =
      """
        for (long long i = first; i < args.packets; i += step) {
          send_to_all(args, 0, half, i, full(load(args, i)));
        }
        for (long long i = first; i < args.packets; i += step) {
          store(args, i, reduce(args, half, i, i));
        }
      """;

  /** A block sends the rows that it will take: an op behind may write where they are. */
  private static final String SEND_ROWS =
      """
          for (int at = threadIdx.x; at < TOGETHER * ROW && first * ROW + at < args.packets; at += THREADS) {
            long long i = first * ROW + at;
            send_to_all(args, 0, half, i, full(load(args, i)));
          }
      """;

  private static final String TAKE_ROWS =
      """
          for (int at = threadIdx.x; at < TOGETHER * ROW && first * ROW + at < args.packets; at += THREADS) {
            long long i = first * ROW + at;
            Packet result = reduce(args, half, i, i);
            held[at] = result.words;
            if (STORED) {
              store(args, i, result);
            }
          }
      """;

  private static final String TWO_SHOT =
      """
        for (long long i = first; i < args.slice; i += step) {
      #pragma unroll
          for (int p = 1; p < RANKS; p++) {
            int peer = ((int)args.self + p) % RANKS;
            long long v = peer * args.slice + i;
            if (v < args.packets) {
              send(args.sends[0][peer] + half, i, full(load(args, v)));
            }
          }
        }
        for (long long i = first; i < args.slice; i += step) {
          long long v = args.self * args.slice + i;
          if (v < args.packets) {
            Packet result = reduce(args, half, i, v);
            send_to_all(args, 1, half, i, full(result));
            store(args, v, result);
          }
        }
        for (long long i = first; i < args.slice; i += step) {
          bool wanted[RANKS];
          Packet got[RANKS];
      #pragma unroll
          for (int r = 0; r < RANKS; r++) {
            wanted[r] = r != args.self && r * args.slice + i < args.packets;
          }
          receive(args, 1, half, i, wanted, got);
      #pragma unroll
          for (int r = 0; r < RANKS; r++) {
            if (wanted[r]) {
              store(args, r * args.slice + i, got[r]);
            }
          }
        }
      """;

  /** The rows that it will take of all slices, each to the rank that reduces it. */
  private static final String SEND_SLICES =
      """
        for (long long turn = blockIdx.x; turn < PER; turn += gridDim.x) {
          for (int p = 1; p < RANKS; p++) {
            int peer = ((int)args.self + p) % RANKS;
            for (int at = threadIdx.x; at < TOGETHER * ROW; at += THREADS) {
              long long i = turn * (TOGETHER * ROW) + at;
              send(args.sends[0][peer] + half, i, full(load(args, peer * args.slice + i)));
            }
          }
        }
      """;

  /** All of its own slice first, which its peers wait for. */
  private static final String TAKE_SLICES =
      """
          for (int at = threadIdx.x; at < TOGETHER * ROW; at += THREADS) {
            long long i = turn * (TOGETHER * ROW) + at;
            long long v = slice * args.slice + i;
            Packet result;
            if (slice == (int)args.self) {
              result = reduce(args, half, i, v);
              send_to_all(args, 1, half, i, full(result));
            } else {
              bool wanted[RANKS];
              Packet got[RANKS];
      #pragma unroll
              for (int r = 0; r < RANKS; r++) {
                wanted[r] = r == slice;
              }
              receive(args, 1, half, i, wanted, got);
      #pragma unroll
              for (int r = 0; r < RANKS; r++) {
                if (r == slice) {
                  result = got[r];
                }
              }
            }
            held[at] = result.words;
            if (STORED) {
              store(args, v, result);
            }
          }
      """;

  private static final String END =
      """
        __syncthreads();
        if (threadIdx.x == 0) {
          atomicAdd(count, TICKS / gridDim.x);
        }
      }
      """;

  private PushKernel() {}

  /**
   * {@return the kernel for tensors that pass through a workspace so}
   *
   * @param layout how each rank's own operand and result lie
   */
  static Kernel of(
      Workspace workspace, RowsCode layout, int threads, DType dtype, ReduceOp reduceOp) {
    return of(
        workspace,
        threads,
        dtype,
        reduceOp,
        "",
        layout.text(),
        workspace.rounds() == 1 ? ONE_SHOT : TWO_SHOT);
  }

  /**
   * {@return the kernel with other ops on the rows of what is reduced; in two rounds, slices are
   * whole rows, and as many as blocks take at once, or a multiple}
   *
   * @param layout how they lie in the rank's own operand and result
   * @param stored whether what is reduced is stored, too
   * @param more declarations of other arguments
   */
  static Kernel with(
      HeldRows rows,
      Workspace workspace,
      RowsCode layout,
      DType dtype,
      ReduceOp reduceOp,
      boolean stored,
      String more) {
    return of(
        workspace,
        rows.threads(),
        dtype,
        reduceOp,
        more,
        BarrierCode.define("STORED", stored)
            + rows.definitions()
            + (workspace.rounds() == 1
                ? ""
                : BarrierCode.define("PER", rows.rows() / workspace.ranks() / rows.together()))
            + layout.text(),
        workspace.rounds() == 1
            ? HeldRows.each(SEND_ROWS) + rows.loop(TAKE_ROWS, "")
            : SEND_SLICES + rows.loopOverSlicesInTurn(TAKE_SLICES));
  }

  private static Kernel of(
      Workspace workspace,
      int threads,
      DType dtype,
      ReduceOp reduceOp,
      String more,
      String definitions,
      String statements) {
    int ranks = workspace.ranks();
    return new Kernel(
        BarrierCode.define("ROUNDS", workspace.rounds())
            + BarrierCode.define("PUSHES", DeviceProgram.MAX_BLOCKS)
            + BarrierCode.define("TICKS", TICKS)
            + BarrierCode.define("EMPTY", "0x%1$02x%1$02x%1$02x%1$02xu".formatted(Workspace.EMPTY))
            + BarrierCode.args(
                ranks,
                threads,
                """
                  const char* from;
                  char* to;
                  char* sends[ROUNDS][RANKS];
                  char* slots[ROUNDS][RANKS];
                  long long half;
                  long long slice;
                  long long packets;
                  long long vectors;
                  long long elements;
                """
                    + more)
            + Arithmetic.of(dtype, reduceOp, ranks)
            + definitions
            + PACKETS
            + (workspace.flagged() ? FLAGS : SPARE_BITS)
            + ROUNDS
            + statements
            + END);
  }
}
