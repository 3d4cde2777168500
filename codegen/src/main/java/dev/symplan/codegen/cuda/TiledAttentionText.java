package dev.symplan.codegen.cuda;

/** The text of {@link TiledAttention}'s kernel; words after a dollar sign are replaced. */
final class TiledAttentionText {
  private TiledAttentionText() {}

  static final String TEXT =
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
      """
          + SoftmaxText.FUNCTIONS
          + """

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
              #pragma unroll $STEPS
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
              #pragma unroll $STEPS
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

  static final String STORE_VECTOR =
      """
      if (first_d < WIDTH) {
                const int d = first_d;
                *(Four*)&$OUT = *(const Four*)out[i][j];
              }\
      """;

  static final String STORE_EACH =
      """
      #pragma unroll
              for (int u = 0; u < UNIT; u++) {
                const int d = first_d + u;
                if (d < WIDTH) {
                  $OUT = $NARROW;
                }
              }\
      """;

  static final String LOAD =
      """

      __device__ __forceinline__ void load_$NAME(const Args& args, float* to, int b, int h, int first, int thread) {
      $BODY}
      """;

  static final String LOAD_VECTORS =
      """
        const int line = first;
        const int d = 0;
        load_vectors<$COUNT, $WIDE, $PITCH, $BY>(to, &$ELEMENT, $STRIDE, $ALL - first, thread);
      """;

  static final String LOAD_EACH =
      """
        #pragma unroll 8
        for (int i = thread; i < $COUNT * $PADDED; i += $BY) {
          const int line = first + i / $PADDED;
          const int d = i % $PADDED;
          to[i / $PADDED * $PITCH + d] = line < $ALL && d < $WIDE ? $VALUE : 0;
        }
      """;
}
