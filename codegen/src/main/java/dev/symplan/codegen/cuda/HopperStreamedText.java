package dev.symplan.codegen.cuda;

/** The text of a {@link HopperStreamedKernel}, with names in place of numbers. */
final class HopperStreamedText {
  private HopperStreamedText() {}

  static final String KERNEL =
      HopperText.MAP
          + """
          struct Args {
            Map matrices[$PRODUCTS];
            Map vectors;
            char* memory[$POINTERS];
          };

          """
          + HopperText.FUNCTIONS
          + """
          struct alignas(2 * $WIDTH) Neighbours {
            unsigned short e[$WIDTH];
          };

          struct alignas(8) Two {
            float x, y;
          };

          /** Has a box copied that no other block reads. */
          __device__ __forceinline__ void load_once(unsigned to, const Map* map, int near, int line, int matrix, unsigned barrier, unsigned long long policy) {
            asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" :: "r"(to), "l"(map), "r"(near), "r"(line), "r"(matrix), "r"(barrier), "l"(policy) : "memory");
          }

          __device__ __forceinline__ void load_matrices(unsigned to, const Args& args, int near, int line, unsigned barrier, unsigned long long policy) {
            expect(barrier, $MATRICES_BYTES);
            #pragma unroll
            for (int p = 0; p < $PRODUCTS; p++) {
              load_once(to + p * $MATRIX_BYTES, &args.matrices[p], near, line, 0, barrier, policy);
            }
          }

          /** Waits for all threads of the cluster, and sees what they wrote. */
          __device__ __forceinline__ void meet_cluster() {
            asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
          }

          /** The same address in the shared memory of a block of the cluster. */
          __device__ __forceinline__ unsigned in_block(unsigned at, int block) {
            unsigned there;
            asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(block));
            return there;
          }

          __device__ __forceinline__ void read_sums(float (&to)[$READ], unsigned from) {
            asm volatile("ld.shared::cluster$READ_TYPE {$READ_NAMES}, [%$READ];" : $READ_SUMS : "r"(from) : "memory");
          }

          extern "C" __global__ void $CLUSTER__launch_bounds__($THREADS, 1) symplan_kernel(const __grid_constant__ Args args) {
            extern __shared__ unsigned char dynamic[];
            // Boxes begin at multiples of 1 KiB, as the permutation of their chunks goes by addresses.
            const unsigned matrices = (shared_address(dynamic) + 1023) & ~1023u;
            const unsigned vectors = matrices + $AHEAD * $MATRICES_BYTES;
            const unsigned full_matrices = matrices + $DATA_BYTES;
            const unsigned full_vectors = full_matrices + 8 * $AHEAD;
            const unsigned empty = full_vectors + 8 * $STAGES;
            const int lane = threadIdx.x % 32;
            // The same for all of a warp, as the compiler sees by this.
            const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
            const int part = blockIdx.x % $PARTS;
            const int first = blockIdx.x / $PARTS * $BLOCK_ROWS;
            const int begin = part * $PART_CHUNKS;
            const int count = begin + $PART_CHUNKS < $CHUNKS ? $PART_CHUNKS : $CHUNKS - begin;
            if (threadIdx.x == 0) {
              for (int s = 0; s < $AHEAD; s++) {
                init_barrier(full_matrices + 8 * s, 1);
              }
              for (int s = 0; s < $STAGES; s++) {
                init_barrier(full_vectors + 8 * s, 1);
                init_barrier(empty + 8 * s, $TEAMS * 4);
              }
              asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            }
            __syncthreads();
            const bool copies = warp == $TEAMS * 4 && lane == 0;
            // What is read once leaves the cache first.
            unsigned long long policy;
            asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
            for (int s = 0; copies && s < $AHEAD && s < count; s++) {
              load_matrices(matrices + s * $MATRICES_BYTES, args, $DEPTH * (begin + s), first, full_matrices + 8 * s, policy);
            }
            __syncwarp();
          $AWAIT  int stage = 0;
            int ahead = 0;
            unsigned phase = 0;
            unsigned ahead_phase = 0;
            if (warp == $TEAMS * 4) {
              for (int c = 0; copies && c < count; c++) {
                if (c >= $STAGES) {
                  await(empty + 8 * stage, phase ^ 1);
                  const int next = c - $STAGES + $AHEAD;
                  if (next < count) {
                    load_matrices(matrices + ahead * $MATRICES_BYTES, args, $DEPTH * (begin + next), first, full_matrices + 8 * ahead, policy);
                  }
                  ahead = ahead + 1 == $AHEAD ? 0 : ahead + 1;
                }
                expect(full_vectors + 8 * stage, $COPIED_BYTES);
                load(vectors + stage * $VECTORS_BYTES, &args.vectors, $DEPTH * (begin + c), 0, 0, full_vectors + 8 * stage);
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
            for (int c = 0; c < count; c++) {
              await(full_matrices + 8 * ahead, ahead_phase);
              await(full_vectors + 8 * stage, phase);
              __syncwarp();
              const unsigned left = vectors + stage * $VECTORS_BYTES + team * $BOX_BYTES;
              const unsigned right = matrices + ahead * $MATRICES_BYTES;
              asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
              #pragma unroll
              for (int k = 0; k < $DEPTH / 16; k++) {
                multiply(sums, boxes(left + k * 32), boxes(right + k * 32));
              }
              asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
              // As in the kernel of grouped products, no sums are read while products are under way.
              asm volatile("wgmma.wait_group.sync.aligned 0;" : $SUMS :: "memory");
              if (lane == 0) {
                arrive(empty + 8 * stage);
              }
              stage = stage + 1 == $STAGES ? 0 : stage + 1;
              phase ^= stage == 0;
              ahead = ahead + 1 == $AHEAD ? 0 : ahead + 1;
              ahead_phase ^= ahead == 0;
            }
            // All teams have multiplied all that was copied.
            meet(1, $MULTIPLYING);
            float* shared = (float*)(dynamic + (matrices - shared_address(dynamic)));
            #pragma unroll
            for (int j = 0; j < $RIGHT / 8; j++) {
              const int vector = team * 64 + warp % 4 * 16 + lane / 4;
              float* at = shared + vector * $PITCH + j * 8 + lane % 4 * 2;
              *(Two*)at = Two{sums[4 * j], sums[4 * j + 1]};
              *(Two*)(at + 8 * $PITCH) = Two{sums[4 * j + 2], sums[4 * j + 3]};
            }
            meet_cluster();
            // The parts take turns with the vectors.
            for (int item = threadIdx.x; item < $BLOCK_ROWS / $WIDTH * (($VECTORS + $PARTS - 1 - part) / $PARTS); item += $MULTIPLYING) {
              const int row = item % ($BLOCK_ROWS / $WIDTH) * $WIDTH;
              const int vector = item / ($BLOCK_ROWS / $WIDTH) * $PARTS + part;
              if (first + row < $ROWS) {
                float sum[$PRODUCTS][$WIDTH] = {};
                #pragma unroll
                for (int block = 0; block < $PARTS; block++) {
                  const unsigned from = in_block(matrices + (vector * $PITCH + row) * 4, block);
                  #pragma unroll
                  for (int n = 0; n < $PRODUCTS * $WIDTH; n += $READ) {
                    float other[$READ];
                    read_sums(other, from + (n / $WIDTH * $BLOCK_ROWS + n % $WIDTH) * 4);
                    #pragma unroll
                    for (int e = 0; e < $READ; e++) {
                      sum[n / $WIDTH][n % $WIDTH + e] += other[e];
                    }
                  }
                }
          $RESULTS      }
            }
            // The others may still read its sums.
            meet_cluster();
          }
          """;

  /** Later ops compute with the results as they would be in memory. */
  static final String RESULT =
      """
              Neighbours bits$P;
              float product$P[$WIDTH];
              #pragma unroll
              for (int e = 0; e < $WIDTH; e++) {
                const long long at = first + row + e;
                bits$P.e[e] = $NARROW($SUM);
                product$P[e] = $WIDEN(bits$P.e[e]);
              }
      """;

  static final String STORE =
      """
              *(Neighbours*)((unsigned short*)$RESULT + (long long)vector * $LEADING + first + row) = bits$P;
      """;
}
