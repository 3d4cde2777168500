package dev.symplan.codegen.cuda;

/** The text of a {@link HopperGroupedKernel}, with names in place of numbers. */
final class HopperGroupedText {
  private HopperGroupedText() {}

  static final String KERNEL =
      HopperText.MAP
          + """
          struct Args {
            Map left;
            Map right;
            char* memory[$POINTERS];
          };

          """
          + HopperText.FUNCTIONS
          + """
          /** The tile that a block computes. */
          struct Walk {
            long long tile;
            long long passed;
            long long tiles;
            int group;
            int begin;
            int end;

            /** Goes to the group of the tile; false if there is none. */
            __device__ __forceinline__ bool find(const Args& args) {
              while (tile - passed >= tiles) {
                passed += tiles;
                group++;
                begin = end;
                if (group > $LAST_GROUP) {
                  return false;
                }
                end = $NEXT_END;
                tiles = (long long)$NEAR_TILES * $FAR_TILES;
              }
              return true;
            }

            /** Neighbours in one dimension follow each other, up to some; then come those in the other. */
            __device__ __forceinline__ void place(int& near, int& far) const {
              const int count = $NEAR_TILES;
              const int band = (int)((tile - passed) / ($BAND * $FAR_TILES));
              const int in_band = (int)((tile - passed) % ($BAND * $FAR_TILES));
              const int width = count - band * $BAND < $BAND ? count - band * $BAND : $BAND;
              near = band * $BAND + in_band % width;
              far = in_band / width;
            }
          };

          extern "C" __global__ void __launch_bounds__($THREADS, 1) symplan_kernel(const __grid_constant__ Args args) {
            extern __shared__ unsigned char dynamic[];
            for (int g = threadIdx.x; g < $GROUPS; g += $THREADS) {
              const int end = $END(g);
              if (end < (g == 0 ? 0 : $END(g - 1)) || end > $SHARED) {
                __trap();
              }
            }
            // Boxes begin at multiples of 1 KiB, as the permutation of their chunks goes by addresses.
            const unsigned stages = (shared_address(dynamic) + 1023) & ~1023u;
            const unsigned pieces = stages + $STAGES * $STAGE_BYTES;
            const unsigned full = pieces + $TEAMS * $PIECE_BYTES;
            const unsigned empty = full + 8 * $STAGES;
            const int lane = threadIdx.x % 32;
            // The same for all of a warp, as the compiler sees by this.
            const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
            if (threadIdx.x == 0) {
              for (int s = 0; s < $STAGES; s++) {
                init_barrier(full + 8 * s, 1);
                init_barrier(empty + 8 * s, $TEAMS * 4);
              }
              asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            }
            // No thread goes on with ends that another one refuses.
            __syncthreads();
            Walk walk = {blockIdx.x, 0, 0, -1, 0, 0};
            unsigned stage = 0;
            unsigned phase = 0;
            if (warp == $TEAMS * 4) {
              for (; lane == 0 && walk.find(args); walk.tile += gridDim.x) {
          $PLACE
                for (int c = 0; c < chunks; c++) {
                  await(empty + 8 * stage, phase ^ 1);
                  const unsigned barrier = full + 8 * stage;
                  const unsigned left = stages + stage * $STAGE_BYTES;
                  const unsigned right = left + $LEFT_BYTES;
                  const int k = first_inner + $DEPTH * c;
                  expect(barrier, $STAGE_BYTES);
          $LOAD
                  stage = stage + 1 == $STAGES ? 0 : stage + 1;
                  phase ^= stage == 0;
                }
              }
              return;
            }
            const int team = warp / 4;
            for (; walk.find(args); walk.tile += gridDim.x) {
          $PLACE
              float sums[$RIGHT / 2];
              #pragma unroll
              for (int j = 0; j < $RIGHT / 2; j++) {
                sums[j] = 0;
              }
              for (int c = 0; c < chunks; c++) {
                await(full + 8 * stage, phase);
                __syncwarp();
                const unsigned left = stages + stage * $STAGE_BYTES + team * $BOX_BYTES;
                const unsigned right = stages + stage * $STAGE_BYTES + $LEFT_BYTES;
          $CLEAR
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
                #pragma unroll
                for (int k = 0; k < $DEPTH / 16; k++) {
                  multiply(sums, boxes(left + k * $LEFT_STEP), boxes(right + k * $RIGHT_STEP));
                }
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                // The other team multiplies meanwhile. Sums that are read while products are under way,
                // or look so to ptxas, came out wrong.
                asm volatile("wgmma.wait_group.sync.aligned 0;" : $SUMS :: "memory");
                if (lane == 0) {
                  arrive(empty + 8 * stage);
                }
                stage = stage + 1 == $STAGES ? 0 : stage + 1;
                phase ^= stage == 0;
              }
              $RESULT_TYPE* result = ($RESULT_TYPE*)$RESULT + (long long)$OF_RESULT * $RESULT_GROUP;
              unsigned char* piece = dynamic + (pieces - shared_address(dynamic)) + team * $PIECE_BYTES;
              #pragma unroll
              for (int p = 0; p < $RIGHT; p += $PIECE) {
                meet(1 + team, 128);
                #pragma unroll
                for (int j = 0; j < $PIECE / 8; j++) {
                  const int row = warp % 4 * 16 + lane / 4;
                  const int column = j * 8 + lane % 4 * 2;
                  const float* four = &sums[(p / 8 + j) * 4];
          $STAGE_SUMS
                }
                meet(1 + team, 128);
                const int from_left = first_left + team * 64;
                const int from_right = first_right + p;
                for (int i = threadIdx.x % 128; i < $PIECE_LINES * ($PIECE_ELEMENTS / $VECTOR); i += 128) {
                  const int line = i / ($PIECE_ELEMENTS / $VECTOR);
                  const int element = i % ($PIECE_ELEMENTS / $VECTOR) * $VECTOR;
                  const int at_left = from_left + $AT_LEFT;
                  const int at_right = from_right + $AT_RIGHT;
                  if (at_left >= left_begin && at_left < left_end && at_right >= right_begin && at_right < right_end) {
                    *($VECTOR_TYPE*)(result + at_left * $LEFT_STRIDEll + at_right * $RIGHT_STRIDEll) = *(const $VECTOR_TYPE*)(piece + line * $PITCH + element * $ELEMENT_BYTES);
                  }
                }
              }
            }
          }
          """;

  /** Finds a tile of a group that has lines of its own. */
  static final String PLACE_NEAR =
      """
          int near, far;
          walk.place(near, far);
          const int $NEAR_begin = walk.begin;
          const int $NEAR_end = walk.end;
          const int first_$NEAR = (walk.begin & ~$SKEW) + near * $NEAR_TILE;
          const int $FAR_begin = 0;
          const int $FAR_end = $FAR_LINES;
          const int first_$FAR = far * $FAR_TILE;
          // Behind the last group is one whose products have no terms.
          const int first_inner = 0;
          const int chunks = walk.group < $GROUPS ? $ALL_CHUNKS : 0;
      """;

  /** Finds a tile of a group that has inner elements of its own. */
  static final String PLACE_INNER =
      """
          int near, far;
          walk.place(near, far);
          const int left_begin = 0;
          const int left_end = $LEFT_LINES;
          const int first_left = near * $TILE_LEFT;
          const int right_begin = 0;
          const int right_end = $RIGHT_LINES;
          const int first_right = far * $RIGHT;
          const int first_inner = walk.begin;
          const int chunks = (walk.end - walk.begin + $DEPTH - 1) / $DEPTH;
      """;

  /** Makes inner elements behind a group 0; these are lines of boxes. */
  static final String CLEAR =
      """
            const int valid = walk.end - first_inner - $DEPTH * c;
            if (valid < $DEPTH) {
              // Behind the group are others' elements.
              unsigned char* lines = dynamic + (stages - shared_address(dynamic)) + stage * $STAGE_BYTES;
              const int chunks_of_box = ($DEPTH - valid) * $LINE / 16;
              for (int i = threadIdx.x; i < $STAGE_BYTES / $BOX_BYTES * chunks_of_box; i += $MULTIPLYING) {
                *(Eight*)(lines + i / chunks_of_box * $BOX_BYTES + valid * $LINE + i % chunks_of_box * 16) = Eight{0, 0, 0, 0};
              }
              asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
              meet(1 + $TEAMS, $MULTIPLYING);
            }
      """;
}
