package dev.symplan.codegen.cuda;

/** The texts of {@link SplitAttention}'s kernels; words after a dollar sign are replaced. */
final class SplitAttentionText {
  private SplitAttentionText() {}

  /** Partial results of a range of keys; the results themselves, if there is only one. */
  static final String PARTS =
      SoftmaxText.FUNCTIONS
          + """

          struct alignas($KEY_BYTES) KeyUnit {
            $KEY_TYPE of[KEY_UNIT];
          };

          struct alignas($VALUE_BYTES) ValueUnit {
            $VALUE_TYPE of[VALUE_UNIT];
          };

          extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_AT_A_TIME) symplan_kernel(const __grid_constant__ Args args) {
            // Queries and scores, and in the end the warps' results.
            alignas(16) __shared__ float shared[SHARED];
            __shared__ float most_of[WARPS * ROWS];
            __shared__ float sums_of[WARPS * ROWS];
            const int warp = threadIdx.x / 32;
            const int lane = threadIdx.x % 32;
            const int first_row = blockIdx.x % TILES * ROWS;
            const int split = blockIdx.x / TILES % SPLITS;
            const int g = blockIdx.x / TILES / SPLITS % GROUPS;
            const int b = blockIdx.x / TILES / SPLITS / GROUPS;
            float* queries = shared;
            float* weights = shared + ROWS * PITCH + warp * 32 * ROWS;
            for (int i = threadIdx.x; i < ROWS * PITCH; i += THREADS) {
              const int row = first_row + i / PITCH;
              const int h = g * HEADS_OF_GROUP + row / ALL_ROWS;
              const int q = row % ALL_ROWS;
              const int d = i % PITCH;
              queries[i] = row < ROWS_OF_GROUP && d < FEATURES ? $QUERY : 0;
            }
            __syncthreads();
            float out[ROWS][OF_WIDTH][VALUE_UNIT];
            float most[ROWS];
            float sums[ROWS];
            #pragma unroll
            for (int r = 0; r < ROWS; r++) {
              most[r] = -$INFINITY;
              sums[r] = 0;
              #pragma unroll
              for (int s = 0; s < OF_WIDTH; s++) {
                #pragma unroll
                for (int u = 0; u < VALUE_UNIT; u++) {
                  out[r][s][u] = 0;
                }
              }
            }
            const int end = (split + 1) * SPLIT_KEYS < SEEN ? (split + 1) * SPLIT_KEYS : SEEN;
            #pragma unroll 1
            for (int first = split * SPLIT_KEYS + warp * 32; first < end; first += WARPS * 32) {
              #pragma unroll 1
              for (int j = 0; j < KEY_LANES; j += AT_ONCE) {
                float scores[AT_ONCE][ROWS];
                #pragma unroll
                for (int i = 0; i < AT_ONCE; i++) {
                  #pragma unroll
                  for (int r = 0; r < ROWS; r++) {
                    scores[i][r] = 0;
                  }
                }
                #pragma unroll
                for (int s = 0; s < OF_FEATURES; s++) {
                  const int d = (s * KEY_LANES + lane % KEY_LANES) * KEY_UNIT;
                  KeyUnit keys[AT_ONCE];
                  #pragma unroll
                  for (int i = 0; i < AT_ONCE; i++) {
                    const int k = first + (j + i) * (32 / KEY_LANES) + lane / KEY_LANES;
                    keys[i] = KeyUnit();
                    if (k < end && d < FEATURES) {
                      keys[i] = *(const KeyUnit*)&$KEY;
                    }
                  }
                  #pragma unroll
                  for (int r = 0; r < ROWS; r++) {
                    #pragma unroll
                    for (int u = 0; u < KEY_UNIT; u++) {
                      const float query = queries[r * PITCH + d + u];
                      #pragma unroll
                      for (int i = 0; i < AT_ONCE; i++) {
                        scores[i][r] = fmaf(query, $KEY_ELEMENT, scores[i][r]);
                      }
                    }
                  }
                }
                #pragma unroll
                for (int i = 0; i < AT_ONCE; i++) {
                  const int k = (j + i) * (32 / KEY_LANES) + lane / KEY_LANES;
                  #pragma unroll
                  for (int r = 0; r < ROWS; r++) {
                    #pragma unroll
                    for (int lanes = 1; lanes < KEY_LANES; lanes *= 2) {
                      scores[i][r] += __shfl_xor_sync(0xffffffffu, scores[i][r], lanes);
                    }
                    if (lane % KEY_LANES == 0) {
                      weights[k * ROWS + r] = scores[i][r];
                    }
                  }
                }
              }
              // A warp alone reads and writes its scores.
              __syncwarp();
              #pragma unroll
              for (int r = 0; r < ROWS; r++) {
                const int k = first + lane;
                const int row = first_row + r;
                const int q = row % ALL_ROWS;
                float score = -$INFINITY;
                if (k < end && row < ROWS_OF_GROUP && !(CAUSAL && k > q)) {
                  score = weights[lane * ROWS + r] * $SCALE$BIAS;
                }
                float next = fmaxf(most[r], score);
                #pragma unroll
                for (int lanes = 1; lanes < 32; lanes *= 2) {
                  next = fmaxf(next, __shfl_xor_sync(0xffffffffu, next, lanes));
                }
                const float base = base_of(next);
                const float factor = weight_of(most[r], base);
                const float weight = weight_of(score, base);
                most[r] = next;
                sums[r] = fmaf(sums[r], factor, weight);
                weights[lane * ROWS + r] = weight;
                #pragma unroll
                for (int s = 0; s < OF_WIDTH; s++) {
                  #pragma unroll
                  for (int u = 0; u < VALUE_UNIT; u++) {
                    out[r][s][u] *= factor;
                  }
                }
              }
              __syncwarp();
              #pragma unroll 8
              for (int j = 0; j < VALUE_LANES; j++) {
                const int line = j * (32 / VALUE_LANES) + lane / VALUE_LANES;
                const int k = first + line;
                ValueUnit values[OF_WIDTH];
                #pragma unroll
                for (int s = 0; s < OF_WIDTH; s++) {
                  const int d = (s * VALUE_LANES + lane % VALUE_LANES) * VALUE_UNIT;
                  values[s] = ValueUnit();
                  if (k < end && d < WIDTH) {
                    values[s] = *(const ValueUnit*)&$VALUE;
                  }
                }
                #pragma unroll
                for (int r = 0; r < ROWS; r++) {
                  const float weight = weights[line * ROWS + r];
                  #pragma unroll
                  for (int s = 0; s < OF_WIDTH; s++) {
                    #pragma unroll
                    for (int u = 0; u < VALUE_UNIT; u++) {
                      out[r][s][u] = fmaf(weight, $VALUE_ELEMENT, out[r][s][u]);
                    }
                  }
                }
              }
              __syncwarp();
            }
            // From here on, the results of warps are where queries and scores were.
            __syncthreads();
            #pragma unroll
            for (int r = 0; r < ROWS; r++) {
              #pragma unroll
              for (int lanes = 1; lanes < 32; lanes *= 2) {
                sums[r] += __shfl_xor_sync(0xffffffffu, sums[r], lanes);
              }
              if (lane == 0) {
                most_of[warp * ROWS + r] = most[r];
                sums_of[warp * ROWS + r] = sums[r];
              }
              #pragma unroll
              for (int s = 0; s < OF_WIDTH; s++) {
                #pragma unroll
                for (int u = 0; u < VALUE_UNIT; u++) {
                  #pragma unroll
                  for (int lanes = VALUE_LANES; lanes < 32; lanes *= 2) {
                    out[r][s][u] += __shfl_xor_sync(0xffffffffu, out[r][s][u], lanes);
                  }
                  const int d = (s * VALUE_LANES + lane % VALUE_LANES) * VALUE_UNIT + u;
                  if (lane < VALUE_LANES && d < WIDTH) {
                    shared[(warp * ROWS + r) * WIDTH + d] = out[r][s][u];
                  }
                }
              }
            }
            __syncthreads();
            for (int i = threadIdx.x; i < ROWS * WIDTH; i += THREADS) {
              const int r = i / WIDTH;
              const int d = i % WIDTH;
              const int row = first_row + r;
              if (row < ROWS_OF_GROUP) {
                const int h = g * HEADS_OF_GROUP + row / ALL_ROWS;
                const int q = row % ALL_ROWS;
                float most = most_of[r];
                for (int w = 1; w < WARPS; w++) {
                  most = fmaxf(most, most_of[w * ROWS + r]);
                }
                const float base = base_of(most);
                float sum = 0;
                float part = 0;
                for (int w = 0; w < WARPS; w++) {
                  const float factor = weight_of(most_of[w * ROWS + r], base);
                  sum = fmaf(sums_of[w * ROWS + r], factor, sum);
                  part = fmaf(shared[(w * ROWS + r) * WIDTH + d], factor, part);
                }
                $STORE
              }
            }
          }
          """;

  static final String STORE_PART =
      """
      const long long at = ((long long)(b * HEADS + h) * ALL_ROWS + q) * SPLITS + split;
                $PARTIAL_OUT = part;
                if (d == 0) {
                  $PARTIAL_MOST = most;
                  $PARTIAL_SUM = sum;
                }\
      """;

  /** The results of all ranges of keys, put together in their order. */
  static final String MERGE =
      SoftmaxText.FUNCTIONS
          + """

          extern "C" __global__ void __launch_bounds__(THREADS) symplan_kernel(const __grid_constant__ Args args) {
            const int q = blockIdx.x % ALL_ROWS;
            const int h = blockIdx.x / ALL_ROWS % HEADS;
            const int b = blockIdx.x / ALL_ROWS / HEADS;
            const long long first = (long long)blockIdx.x * SPLITS;
            float most = -$INFINITY;
            #pragma unroll 8
            for (int split = 0; split < SPLITS; split++) {
              const long long at = first + split;
              most = fmaxf(most, $PARTIAL_MOST);
            }
            const float base = base_of(most);
            for (int d = threadIdx.x; d < WIDTH; d += THREADS) {
              float sum = 0;
              float part = 0;
              #pragma unroll 8
              for (int split = 0; split < SPLITS; split++) {
                const long long at = first + split;
                const float factor = weight_of($PARTIAL_MOST, base);
                sum = fmaf($PARTIAL_SUM, factor, sum);
                part = fmaf($PARTIAL_OUT, factor, part);
              }
              $STORE
            }
          }
          """;
}
