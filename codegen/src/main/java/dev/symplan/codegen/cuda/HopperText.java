package dev.symplan.codegen.cuda;

/** What texts of kernels for Hopper GPUs have in common, with names in place of numbers. */
final class HopperText {
  private HopperText() {}

  static final String MAP =
      """

      struct alignas(64) Map {
        unsigned long long words[16];
      };

      """;

  static final String FUNCTIONS =
      """
      struct alignas(16) Eight {
        unsigned x, y, z, w;
      };

      __device__ __forceinline__ unsigned shared_address(const void* at) {
        return (unsigned)__cvta_generic_to_shared(at);
      }

      __device__ __forceinline__ void init_barrier(unsigned barrier, int arrivals) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
      }

      __device__ __forceinline__ void arrive(unsigned barrier) {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
      }

      /** Arrives, and makes the barrier wait for so many bytes as well. */
      __device__ __forceinline__ void expect(unsigned barrier, int bytes) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
      }

      /** Waits for the end of a phase, which are 0 and 1 by turns. */
      __device__ __forceinline__ void await(unsigned barrier, unsigned phase) {
        asm volatile("{ .reg .pred done; retry: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @done bra ready; bra retry; ready: }" :: "r"(barrier), "r"(phase) : "memory");
      }

      /** Has a box copied, and its bytes reported to a barrier. */
      __device__ __forceinline__ void load(unsigned to, const Map* map, int near, int line, int matrix, unsigned barrier) {
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" :: "r"(to), "l"(map), "r"(near), "r"(line), "r"(matrix), "r"(barrier) : "memory");
      }

      /** Some threads wait for each other; all of a warp come together. */
      __device__ __forceinline__ void meet(int number, int threads) {
        __syncwarp();
        asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory");
      }

      /** Describes boxes in shared memory: where the next eight lines are, and the next box. */
      __device__ __forceinline__ unsigned long long boxes(unsigned at) {
        return (at & 0x3ffffu) >> 4 | (unsigned long long)($BOX_BYTES >> 4) << 16 | (unsigned long long)(8 * $LINE >> 4) << 32 | 1ull << 62;
      }

      /** Adds the product of 64 × 16 and 16 × $RIGHT elements. */
      __device__ __forceinline__ void multiply(float* sums, unsigned long long left, unsigned long long right) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n$RIGHTk16.f32.$TYPE.$TYPE {$NAMES}, %$LEFT_NAME, %$RIGHT_NAME, 1, 1, 1, $LEFT_ACROSS, $RIGHT_ACROSS;" : $SUMS : "l"(left), "l"(right));
      }

      """;
}
