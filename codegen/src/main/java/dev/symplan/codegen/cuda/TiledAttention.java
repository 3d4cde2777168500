package dev.symplan.codegen.cuda;

import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.AttentionLowering.Problem;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.KernelArgument.Memory;
import dev.symplan.ir.DType;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.GeneratedAttention;
import java.util.List;
import java.util.Optional;

/**
 * Attention that no library computes: in f32, without tensor cores.
 *
 * <p>A block has a tile of rows of queries. Tiles of keys and values go by in shared memory, and
 * the softmax goes along (Milakov and Gimelshein 2018), so that scores are never in memory. A team
 * of four warps computes the products of such a tile: each of its threads those of some rows, eight
 * apart, by some keys or features, sixteen apart. While a team has values multiplied, its next keys
 * are on their way, and the other way round. Two teams of a block take tiles by turns and add up
 * their results in the end.
 *
 * <p>Products and sums are fused by name, as kernels are compiled without contraction.
 *
 * <p>Tiles behind the last key that a causal row sees are left out. Blocks with the most tiles come
 * first.
 */
final class TiledAttention {

  /** Of a team. */
  private static final int THREADS = 128;

  private static final int ROWS_APART = 8;
  private static final int LINES_APART = THREADS / ROWS_APART;

  /** Elements of a vector in shared memory. */
  private static final int FOUR = Alignment.VECTOR / Float.BYTES;

  /**
   * How a block shares its work.
   *
   * @param rows of queries
   * @param keys of a tile
   */
  private record Tile(int rows, int keys, int teams) {}

  private static final String TEXT =
      """

      struct alignas(16) Four {
        float of[4];
      };

      /** Begins to copy 16 bytes, some of which may count as 0 without being read. */
      __device__ __forceinline__ void copy_ahead(void* to, const void* from, int bytes) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes));
      }

      /** What this thread has begun to copy is there for its team, which is done with what was. */
      __device__ __forceinline__ void meet(int number, int threads) {
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncwarp();
        asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory");
      }

      /** 2 to the power; 0 where that is less than any normal number. */
      __device__ __forceinline__ float power_of_two(float exponent) {
        float power;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
        return power;
      }

      /** exp(value - base) */
      __device__ __forceinline__ float weight_of(float value, float base) {
        return power_of_two((value - base) * 1.44269504f);
      }

      /** What is subtracted from scores of which this is the largest. */
      __device__ __forceinline__ float base_of(float most) {
        return most == -$INFINITY ? 0 : most;
      }

      /** Copies lines of vectors that begin at multiples of 16 bytes; lines behind the last are 0. */
      template <int COUNT, int WIDE, int PITCH, int BY>
      __device__ __forceinline__ void load_vectors(float* to, const float* from, long long pitch, int lines, int thread) {
        const int near = thread % 16 * 4;
        to += thread / 16 * PITCH + near;
        from += thread / 16 * pitch + near;
        #pragma unroll
        for (int line = 0; line < COUNT; line += BY / 16) {
          const bool there = line + thread / 16 < lines;
          #pragma unroll
          for (int d = 0; d < WIDE; d += 64) {
            const int left = WIDE - d - near;
            if (left > 0) {
              copy_ahead(to + line * PITCH + d, from + line * pitch + d, there ? left < 4 ? left * 4 : 16 : 0);
            }
          }
        }
      }
      $LOADS
      extern "C" __global__ void __launch_bounds__(TEAMS * 128) symplan_kernel(const __grid_constant__ Args args) {
        extern __shared__ unsigned char dynamic[];
        const int team = threadIdx.x / 128;
        const int thread = threadIdx.x % 128;
        // Lanes next to each other have the same keys, so that a warp reads each only once.
        const int own_row = thread / 32 * 2 + thread % 2;
        const int own_line = thread % 32 / 2;
        float* queries = (float*)dynamic;
        float* of_teams = queries + ROWS * PITCH;
        float* keys = of_teams + team * TEAM_FLOATS;
        float* values = keys + KEYS * PITCH;
        float* weights = values + KEYS * VALUE_PITCH;
        const int first_row = (CAUSAL ? ROW_TILES - 1 - (int)(blockIdx.x / ALL_HEADS) : (int)(blockIdx.x / ALL_HEADS)) * ROWS;
        const int h = blockIdx.x % ALL_HEADS % HEADS;
        const int b = blockIdx.x % ALL_HEADS / HEADS;
        const int seen = CAUSAL && first_row + ROWS < ALL_KEYS ? first_row + ROWS : ALL_KEYS;
        load_queries(args, queries, b, h, first_row, threadIdx.x);
        if (team * KEYS < seen) {
          load_keys(args, keys, b, h, team * KEYS, thread);
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();
        float out[OF_ROWS][OF_WIDTH][UNIT];
        float most[OF_ROWS];
        float sums[OF_ROWS];
        #pragma unroll
        for (int i = 0; i < OF_ROWS; i++) {
          most[i] = -$INFINITY;
          sums[i] = 0;
          #pragma unroll
          for (int j = 0; j < OF_WIDTH; j++) {
            #pragma unroll
            for (int u = 0; u < UNIT; u++) {
              out[i][j][u] = 0;
            }
          }
        }
        for (int first = team * KEYS; first < seen; first += TEAMS * KEYS) {
          meet(1 + team, 128);
          load_values(args, values, b, h, first, thread);
          float scores[OF_ROWS][OF_KEYS];
          float added[OF_ROWS][OF_KEYS];
          #pragma unroll
          for (int i = 0; i < OF_ROWS; i++) {
            #pragma unroll
            for (int j = 0; j < OF_KEYS; j++) {
              const int q = first_row + own_row + 8 * i;
              const int k = first + own_line + 16 * j;
              scores[i][j] = 0;
              added[i][j] = BIASED && q < ALL_ROWS && k < ALL_KEYS ? $BIAS : 0;
            }
          }
          #pragma unroll 8
          for (int d = 0; d < PADDED; d += 4) {
            Four left[OF_ROWS];
            Four right[OF_KEYS];
            #pragma unroll
            for (int i = 0; i < OF_ROWS; i++) {
              left[i] = *(const Four*)(queries + (own_row + 8 * i) * PITCH + d);
            }
            #pragma unroll
            for (int j = 0; j < OF_KEYS; j++) {
              right[j] = *(const Four*)(keys + (own_line + 16 * j) * PITCH + d);
            }
            #pragma unroll
            for (int i = 0; i < OF_ROWS; i++) {
              #pragma unroll
              for (int j = 0; j < OF_KEYS; j++) {
                #pragma unroll
                for (int e = 0; e < 4; e++) {
                  scores[i][j] = fmaf(left[i].of[e], right[j].of[e], scores[i][j]);
                }
              }
            }
          }
          meet(1 + team, 128);
          if (first + TEAMS * KEYS < seen) {
            load_keys(args, keys, b, h, first + TEAMS * KEYS, thread);
          }
          const bool hides = first + KEYS > ALL_KEYS || (CAUSAL && first + KEYS - 1 > first_row);
          #pragma unroll
          for (int i = 0; i < OF_ROWS; i++) {
            float next = most[i];
            #pragma unroll
            for (int j = 0; j < OF_KEYS; j++) {
              const int k = first + own_line + 16 * j;
              scores[i][j] = fmaf(scores[i][j], $SCALE, added[i][j]);
              if (hides && (k >= ALL_KEYS || (CAUSAL && k > first_row + own_row + 8 * i))) {
                scores[i][j] = -$INFINITY;
              }
              next = fmaxf(next, scores[i][j]);
            }
            #pragma unroll
            for (int lanes = 2; lanes < 32; lanes *= 2) {
              next = fmaxf(next, __shfl_xor_sync(0xffffffffu, next, lanes));
            }
            const float base = base_of(next);
            const float factor = weight_of(most[i], base);
            most[i] = next;
            sums[i] *= factor;
            #pragma unroll
            for (int j = 0; j < OF_KEYS; j++) {
              const float weight = weight_of(scores[i][j], base);
              sums[i] += weight;
              weights[(own_row + 8 * i) * WEIGHT_PITCH + own_line + 16 * j] = weight;
            }
            #pragma unroll
            for (int j = 0; j < OF_WIDTH; j++) {
              #pragma unroll
              for (int u = 0; u < UNIT; u++) {
                out[i][j][u] *= factor;
              }
            }
          }
          // A warp alone reads and writes the weights of its rows.
          __syncwarp();
          #pragma unroll 8
          for (int k = 0; k < KEYS; k += 4) {
            Four left[OF_ROWS];
            #pragma unroll
            for (int i = 0; i < OF_ROWS; i++) {
              left[i] = *(const Four*)(weights + (own_row + 8 * i) * WEIGHT_PITCH + k);
            }
            #pragma unroll
            for (int e = 0; e < 4; e++) {
              Unit right[OF_WIDTH];
              #pragma unroll
              for (int j = 0; j < OF_WIDTH; j++) {
                right[j] = *(const Unit*)(values + (k + e) * VALUE_PITCH + (own_line + 16 * j) * UNIT);
              }
              #pragma unroll
              for (int i = 0; i < OF_ROWS; i++) {
                #pragma unroll
                for (int j = 0; j < OF_WIDTH; j++) {
                  #pragma unroll
                  for (int u = 0; u < UNIT; u++) {
                    out[i][j][u] = fmaf(left[i].of[e], right[j].of[u], out[i][j][u]);
                  }
                }
              }
            }
          }
          __syncwarp();
        }
        #pragma unroll
        for (int i = 0; i < OF_ROWS; i++) {
          #pragma unroll
          for (int lanes = 2; lanes < 32; lanes *= 2) {
            sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], lanes);
          }
        }
        if (TEAMS == 2) {
          float* other = of_teams + TEAM_FLOATS + thread;
          __syncthreads();
          if (team == 1) {
            #pragma unroll
            for (int i = 0; i < OF_ROWS; i++) {
              other[128 * 2 * i] = most[i];
              other[128 * (2 * i + 1)] = sums[i];
              #pragma unroll
              for (int j = 0; j < OF_WIDTH; j++) {
                #pragma unroll
                for (int u = 0; u < UNIT; u++) {
                  other[128 * (2 * OF_ROWS + (i * OF_WIDTH + j) * UNIT + u)] = out[i][j][u];
                }
              }
            }
          }
          __syncthreads();
          if (team == 1) {
            return;
          }
          #pragma unroll
          for (int i = 0; i < OF_ROWS; i++) {
            const float next = fmaxf(most[i], other[128 * 2 * i]);
            const float base = base_of(next);
            const float factor = weight_of(most[i], base);
            const float factor_of_other = weight_of(other[128 * 2 * i], base);
            most[i] = next;
            sums[i] = sums[i] * factor + other[128 * (2 * i + 1)] * factor_of_other;
            #pragma unroll
            for (int j = 0; j < OF_WIDTH; j++) {
              #pragma unroll
              for (int u = 0; u < UNIT; u++) {
                out[i][j][u] = out[i][j][u] * factor + other[128 * (2 * OF_ROWS + (i * OF_WIDTH + j) * UNIT + u)] * factor_of_other;
              }
            }
          }
        }
        #pragma unroll
        for (int i = 0; i < OF_ROWS; i++) {
          const int q = first_row + own_row + 8 * i;
          if (q < ALL_ROWS) {
            const float part = sums[i] == 0 ? 0 : 1 / sums[i];
            #pragma unroll
            for (int j = 0; j < OF_WIDTH; j++) {
              #pragma unroll
              for (int u = 0; u < UNIT; u++) {
                out[i][j][u] *= part;
              }
              const int first_d = (own_line + 16 * j) * UNIT;
              $STORE
            }
            $STORE_LOG
          }
        }
      }
      """;

  private static final String STORE_VECTOR =
      """
      if (first_d < WIDTH) {
                const int d = first_d;
                *(Four*)&$OUT = *(const Four*)out[i][j];
              }\
      """;

  private static final String STORE_EACH =
      """
      #pragma unroll
              for (int u = 0; u < UNIT; u++) {
                const int d = first_d + u;
                if (d < WIDTH) {
                  $OUT = $NARROW;
                }
              }\
      """;

  private static final String LOAD =
      """

      __device__ __forceinline__ void load_$NAME(const Args& args, float* to, int b, int h, int first, int thread) {
      $BODY}
      """;

  private static final String LOAD_VECTORS =
      """
        const int line = first;
        const int d = 0;
        load_vectors<$COUNT, $WIDE, $PITCH, $BY>(to, &$ELEMENT, $STRIDE, $ALL - first, thread);
      """;

  private static final String LOAD_EACH =
      """
        #pragma unroll 8
        for (int i = thread; i < $COUNT * $PADDED; i += $BY) {
          const int line = first + i / $PADDED;
          const int d = i % $PADDED;
          to[i / $PADDED * $PITCH + d] = line < $ALL && d < $WIDE ? $VALUE : 0;
        }
      """;

  private final Problem problem;
  private final Tile tile;
  private final MemoryArguments memory = new MemoryArguments();
  private final int features;
  private final int width;

  private TiledAttention(Problem problem, Tile tile) {
    this.problem = problem;
    this.tile = tile;
    this.features = Math.toIntExact(problem.query().type().size(3));
    this.width = Math.toIntExact(problem.value().type().size(3));
  }

  static boolean suits(Problem problem) {
    return GeneratedAttention.suits(
        problem.query().type(), problem.key().type(), problem.value().type());
  }

  /**
   * {@return a launch that computes attention}
   *
   * <p>Hopper GPUs have 227 KiB of shared memory for a block, all others with these instructions
   * have 99 KiB at least.
   *
   * @param logs where the logarithm of each row's sum goes
   */
  static HopperLaunch launch(Problem problem, TensorRef out, Optional<TensorRef> logs) {
    long most = Math.max(problem.query().type().size(3), problem.value().type().size(3));
    var hopper = new Tile(64, most <= 64 ? 128 : most <= 128 ? 64 : 32, 2);
    var other =
        most <= 64 ? new Tile(64, 64, 1) : most <= 128 ? new Tile(64, 32, 1) : new Tile(32, 16, 1);
    return new HopperLaunch(
        new TiledAttention(problem, hopper).launchTile(out, logs),
        new TiledAttention(problem, other).launchTile(out, logs),
        false);
  }

  private Launch launchTile(TensorRef out, Optional<TensorRef> logs) {
    var query = problem.query().type();
    int unit = unit();
    int ofWidth = Math.ceilDiv(width, LINES_APART * unit);
    int valuePitch = ofWidth * LINES_APART * unit;
    int ofRows = tile.rows() / ROWS_APART;
    // A multiple of 16 that is none of 32: the two rows of a warp are in different banks.
    int weightPitch = tile.keys() + (tile.keys() % 32 == 0 ? 16 : 32);
    int ofTiles = tile.keys() * (pitch() + valuePitch) + tile.rows() * weightPitch;
    // A team's results, and the largest and the sum of each row.
    int ofResults = THREADS * ofRows * (ofWidth * unit + 2);
    int teamFloats = tile.teams() == 1 ? ofTiles : Math.max(ofTiles, ofResults);
    long rowTiles = Math.ceilDiv(query.size(2), tile.rows());
    long heads = query.size(0) * query.size(1);
    var constants = new StringBuilder("\n");
    constant(constants, "ROWS", tile.rows());
    constant(constants, "KEYS", tile.keys());
    constant(constants, "TEAMS", tile.teams());
    constant(constants, "WIDTH", width);
    constant(constants, "PADDED", padded(features));
    constant(constants, "PITCH", pitch());
    constant(constants, "VALUE_PITCH", valuePitch);
    constant(constants, "WEIGHT_PITCH", weightPitch);
    constant(constants, "TEAM_FLOATS", teamFloats);
    constant(constants, "UNIT", unit);
    constant(constants, "OF_ROWS", ofRows);
    constant(constants, "OF_KEYS", tile.keys() / LINES_APART);
    constant(constants, "OF_WIDTH", ofWidth);
    constant(constants, "ALL_ROWS", query.size(2));
    constant(constants, "ALL_KEYS", problem.key().type().size(2));
    constant(constants, "ROW_TILES", rowTiles);
    constant(constants, "HEADS", query.size(1));
    constant(constants, "ALL_HEADS", heads);
    constant(constants, "CAUSAL", problem.causal() ? 1 : 0);
    constant(constants, "BIASED", problem.bias().isPresent() ? 1 : 0);
    constants.append(
        "\nstruct alignas(%s) Unit {\n  float of[UNIT];\n};\n".formatted(unit * Float.BYTES));
    var keyHead = "h / " + problem.group();
    var loads =
        load("queries", problem.query(), "h", tile.rows(), tile.teams() * THREADS, pitch())
            + load("keys", problem.key(), keyHead, tile.keys(), THREADS, pitch())
            + load("values", problem.value(), keyHead, tile.keys(), THREADS, valuePitch);
    var type = out.type().dtype();
    boolean byVectors = unit == FOUR && width % FOUR == 0 && isByVectors(out);
    var text =
        TEXT.replace("$LOADS", loads)
            .replace("$STORE_LOG", logs.map(this::storeLog).orElse(""))
            .replace("$STORE", byVectors ? STORE_VECTOR : STORE_EACH)
            .replace("$OUT", element(out, List.of("b", "h", "q", "d")))
            .replace("$NARROW", CTypes.narrow(type, "out[i][j][u]"))
            .replace("$BIAS", problem.bias().map(this::added).orElse("0"))
            .replace("$SCALE", Literals.floating(problem.scale(), false))
            .replace("$INFINITY", Literals.floating(Double.POSITIVE_INFINITY, false));
    return memory
        .launch(
            problem.stream(),
            CTypes.PRELUDE + memory.struct() + constants + text,
            rowTiles * heads,
            Integer.MAX_VALUE,
            tile.teams() * THREADS,
            problem.label())
        .withShared(Float.BYTES * (tile.rows() * pitch() + tile.teams() * teamFloats));
  }

  private static void constant(StringBuilder to, String name, long value) {
    to.append("constexpr int %s = %s;\n".formatted(name, value));
  }

  private static int padded(int elements) {
    return Math.ceilDiv(elements, FOUR) * FOUR;
  }

  /**
   * Floats of a line of queries or keys: an odd number of vectors, so that lines differ in banks.
   */
  private int pitch() {
    return FOUR * (padded(features) / FOUR | 1);
  }

  /** Features next to each other that a thread has: many, but not where others then have none. */
  private int unit() {
    int unit = FOUR;
    while (unit > 1
        && 4 * Math.ceilDiv(width, LINES_APART * unit) * LINES_APART * unit > 5 * width) {
      unit /= 2;
    }
    return unit;
  }

  private String load(String name, TensorRef ref, String head, int count, int by, int pitch) {
    int wide = Math.toIntExact(ref.type().size(3));
    var element = element(ref, List.of("b", head, "line", "d"));
    return LOAD.replace("$BODY", isByVectors(ref) ? LOAD_VECTORS : LOAD_EACH)
        .replace("$NAME", name)
        .replace("$ELEMENT", element)
        .replace("$VALUE", CTypes.widen(ref.type().dtype(), element))
        .replace("$STRIDE", Long.toString(ref.type().stride(2)))
        .replace("$COUNT", Integer.toString(count))
        .replace("$WIDE", Integer.toString(wide))
        .replace("$PADDED", Integer.toString(padded(wide)))
        .replace("$PITCH", Integer.toString(pitch))
        .replace("$ALL", Long.toString(ref.type().size(2)))
        .replace("$BY", Integer.toString(by));
  }

  private String element(TensorRef ref, List<String> indices) {
    return memory.element(
        CTypes.stored(ref.type().dtype()),
        Memory.of(problem.rank(), ref),
        Indices.offset(ref.type(), indices));
  }

  /** Whether lines are floats that begin at multiples of 16 bytes. */
  private boolean isByVectors(TensorRef ref) {
    var type = ref.type();
    if (type.dtype() != DType.F32 || type.size(3) > 1 && type.stride(3) != 1) {
      return false;
    }
    for (int dim = 0; dim < 3; dim++) {
      if (type.size(dim) > 1 && type.stride(dim) % FOUR != 0) {
        return false;
      }
    }
    return Memory.of(problem.rank(), ref).address().isVectorAligned();
  }

  private String storeLog(TensorRef ref) {
    var log = "(sums[i] == 0 ? $INFINITY : most[i] + logf(sums[i]))";
    return "if (own_line == 0) {\n        %s = %s;\n      }"
        .formatted(
            element(ref, List.of("b", "h", "q", "0")), CTypes.narrow(ref.type().dtype(), log));
  }

  private String added(TensorRef ref) {
    var dtype = ref.type().dtype();
    var own = CTypes.widen(dtype, element(ref, List.of("b", "h", "q", "k")));
    return dtype == DType.BOOL ? "(%s ? 0.0f : -$INFINITY)".formatted(own) : "(float)" + own;
  }
}
