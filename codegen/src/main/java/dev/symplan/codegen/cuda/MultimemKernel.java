package dev.symplan.codegen.cuda;

import dev.symplan.codegen.cuda.BarrierCode.Edges;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.ReduceOp;

/**
 * Kernels that let the switch add what all ranks have, or store to all of them, through addresses
 * that stand for the memory of all ranks at once (NVLink multicast, from sm_90 on). Sums are f32,
 * in an order of the switch's. What does not fill 16 bytes goes to the peers one by one.
 *
 * <p>Multicast addresses are aliases of memory that other kernels reach by its own addresses. PTX
 * orders accesses by different addresses of one location only where an alias fence lies between
 * them, so each thread has one before its first access through multicast and one after its last.
 */
final class MultimemKernel {
  private static final String MULTIMEM =
      """

      __device__ __forceinline__ uint4 load_reduce16(const char* from) {
        uint4 value;
        asm volatile("multimem.ld_reduce.relaxed.sys.global.add%s {%%0, %%1, %%2, %%3}, [%%4];"
                     : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                     : "l"(from)
                     : "memory");
        return value;
      }

      __device__ __forceinline__ void store_all16(char* to, uint4 value) {
        asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%%0], {%%1, %%2, %%3, %%4};" ::"l"(to),
                     "f"(__uint_as_float(value.x)), "f"(__uint_as_float(value.y)),
                     "f"(__uint_as_float(value.z)), "f"(__uint_as_float(value.w))
                     : "memory");
      }

      __device__ __forceinline__ void fence_aliases() {
        asm volatile("fence.proxy.alias;" ::: "memory");
      }
      """;

  private static final String VECTORS =
      """
        fence_aliases();
        long long step = (long long)gridDim.x * THREADS;
        long long thread = (long long)blockIdx.x * THREADS + threadIdx.x;
        const Args& tensor = args;
        for (long long v = thread; v < tensor.vectors; v += step) {
          uint4 value = REDUCES ? load_reduce16(tensor.source + v * 16) : read16(tensor.source + v * 16);
          if (REPLICATES) {
            store_all16(tensor.target + v * 16, value);
          } else {
            write16(tensor.target + v * 16, value);
          }
        }
        fence_aliases();
      """;

  private MultimemKernel() {}

  /**
   * {@return a kernel that takes the sum of all ranks', or its own elements, and stores them to all
   * ranks, or its own memory}
   */
  static Kernel of(int ranks, DType dtype, boolean reduces, boolean replicates, Edges edges) {
    return new Kernel(
        BarrierCode.define("REDUCES", reduces)
            + BarrierCode.define("REPLICATES", replicates)
            + BarrierCode.define("SOURCES", reduces ? ranks : 1)
            + BarrierCode.define("TARGETS", replicates ? ranks : 1)
            + edges.define(replicates)
            + BarrierCode.args(
                ranks,
                CollectiveAddresses.THREADS,
                """
                  const char* source;
                  char* target;
                  const char* from[SOURCES];
                  char* to[TARGETS];
                  long long vectors;
                  long long elements;
                """)
            + (reduces ? Arithmetic.of(dtype, ReduceOp.SUM, ranks) : Arithmetic.none(dtype.bytes()))
            + multimem(dtype)
            + RowsCode.ONE.text()
            + BarrierCode.between(VECTORS + CollectiveKernels.REST));
  }

  /** For a type that is not added, any instruction will do: the code is there, but not called. */
  private static String multimem(DType dtype) {
    var type =
        switch (dtype) {
          case BF16 -> ".acc::f32.v4.bf16x2";
          case F16 -> ".acc::f32.v4.f16x2";
          default -> ".v4.f32";
        };
    return MULTIMEM.formatted(type);
  }
}
