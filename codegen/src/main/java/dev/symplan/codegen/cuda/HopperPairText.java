package dev.symplan.codegen.cuda;

/** The text of a {@link HopperPair}, with names in place of numbers. */
final class HopperPairText {
  private HopperPairText() {}

  static final String KERNEL =
      HopperText.MAP
          + """
          struct Args {
            Map one;
            Map other;
            Map vectors;
            char* memory[$POINTERS];
          };

          """
          + HopperText.FUNCTIONS
          + """
          /** Has a box copied that no other block reads. */
          __device__ __forceinline__ void load_once(unsigned to, const Map* map, int near, int line, int matrix, unsigned barrier, unsigned long long policy) {
            asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" :: "r"(to), "l"(map), "r"(near), "r"(line), "r"(matrix), "r"(barrier), "l"(policy) : "memory");
          }

          extern "C" __global__ void __launch_bounds__($THREADS, 1) symplan_kernel(const __grid_constant__ Args args) {
            extern __shared__ unsigned char dynamic[];
            // Boxes begin at multiples of 1 KiB, as the permutation of their chunks goes by addresses.
            const unsigned stages = (shared_address(dynamic) + 1023) & ~1023u;
            const unsigned full = stages + $DATA_BYTES;
            const unsigned empty = full + 8 * $STAGES;
            const int lane = threadIdx.x % 32;
            // The same for all of a warp, as the compiler sees by this.
            const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
            const int first = blockIdx.x * $BLOCK_ROWS;
            if (threadIdx.x == 0) {
              for (int s = 0; s < $STAGES; s++) {
                init_barrier(full + 8 * s, 1);
                init_barrier(empty + 8 * s, $TEAMS * 4);
              }
              asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            }
            __syncthreads();
            const bool copies = warp == $TEAMS * 4 && lane == 0;
            // What is read once leaves the cache first.
            unsigned long long policy;
            asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
            for (int c = 0; copies && c < $STAGES && c < $CHUNKS; c++) {
              const unsigned barrier = full + 8 * c;
              const unsigned to = stages + c * $STAGE_BYTES;
              expect(barrier, $STAGE_BYTES);
              load_once(to, &args.one, $DEPTH * c, first, 0, barrier, policy);
              load_once(to + $MATRIX_BYTES, &args.other, $DEPTH * c, first, 0, barrier, policy);
            }
            __syncwarp();
          $AWAIT  unsigned stage = 0;
            unsigned phase = 0;
            if (warp == $TEAMS * 4) {
              for (int c = 0; copies && c < $CHUNKS; c++) {
                const unsigned barrier = full + 8 * stage;
                const unsigned to = stages + stage * $STAGE_BYTES;
                if (c >= $STAGES) {
                  await(empty + 8 * stage, phase ^ 1);
                  expect(barrier, $STAGE_BYTES);
                  load_once(to, &args.one, $DEPTH * c, first, 0, barrier, policy);
                  load_once(to + $MATRIX_BYTES, &args.other, $DEPTH * c, first, 0, barrier, policy);
                }
                load(to + 2 * $MATRIX_BYTES, &args.vectors, $DEPTH * c, 0, 0, barrier);
                stage = stage + 1 == $STAGES ? 0 : stage + 1;
                phase ^= stage == 0;
              }
              return;
            }
            const int team = warp / 4;
            float sums[$RIGHT / 2];
            #pragma unroll
            for (int j = 0; j < $RIGHT / 2; j++) {
              sums[j] = 0;
            }
            for (int c = 0; c < $CHUNKS; c++) {
              await(full + 8 * stage, phase);
              __syncwarp();
              const unsigned matrices = stages + stage * $STAGE_BYTES;
              const unsigned vectors = matrices + 2 * $MATRIX_BYTES + team * $BOX_BYTES;
              asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
              #pragma unroll
              for (int k = 0; k < $DEPTH / 16; k++) {
                multiply(sums, boxes(vectors + k * 32), boxes(matrices + k * 32));
              }
              asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
              // As in the kernel of grouped products, no sums are read while products are under way.
              asm volatile("wgmma.wait_group.sync.aligned 0;" : $SUMS :: "memory");
              if (lane == 0) {
                arrive(empty + 8 * stage);
              }
              stage = stage + 1 == $STAGES ? 0 : stage + 1;
              phase ^= stage == 0;
            }
            // Both teams have multiplied all that was copied.
            meet(1, $MULTIPLYING);
            float* shared = (float*)(dynamic + (stages - shared_address(dynamic)));
            #pragma unroll
            for (int j = 0; j < $RIGHT / 8; j++) {
              const int vector = team * 64 + warp % 4 * 16 + lane / 4;
              const int column = j * 8 + lane % 4 * 2;
              shared[vector * $PITCH + column] = sums[4 * j];
              shared[vector * $PITCH + column + 1] = sums[4 * j + 1];
              shared[(vector + 8) * $PITCH + column] = sums[4 * j + 2];
              shared[(vector + 8) * $PITCH + column + 1] = sums[4 * j + 3];
            }
            meet(1, $MULTIPLYING);
            #pragma unroll 4
            for (int item = threadIdx.x; item < $BLOCK_ROWS * $VECTORS; item += $MULTIPLYING) {
              const int row = item % $BLOCK_ROWS;
              const int vector = item / $BLOCK_ROWS;
              const long long at = first + row;
              const float sum0 = shared[vector * $PITCH + row];
              const float sum1 = shared[vector * $PITCH + $BLOCK_ROWS + row];
              if (at < $ROWS) {
                const long long i = (long long)vector * $ROWS + at;
                // Later ops compute with the results as they are in memory.
                const unsigned short bits0 = $NARROW($SUM0);
                const unsigned short bits1 = $NARROW($SUM1);
                ((unsigned short*)$RESULT0)[i] = bits0;
                ((unsigned short*)$RESULT1)[i] = bits1;
                const float product0 = $WIDEN(bits0);
                const float product1 = $WIDEN(bits1);
          $REST    }
            }
          }
          """;
}
