package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.StreamKind;

/** Copies elements between two layouts of one shape: bit by bit, or converted. */
final class CopyKernel {
  private static final int THREADS = 256;
  private static final int MAX_BLOCKS = 4096;

  private CopyKernel() {}

  static DeviceStep.Launch launch(
      int rank, StreamKind stream, TensorRef from, TensorRef to, String label) {
    long count = to.type().numel();
    var source = from.type().dtype();
    var target = to.type().dtype();
    boolean same = source == target;
    var read = "args.from[%s]".formatted(offset(from.type()));
    var indices = Indices.of("    ", "long long i", "rest", to.type().sizes());
    var text =
        (same ? "" : CTypes.PRELUDE + "\n")
            + """
            struct Args {
              const %1$s* from;
              %7$s* to;
            };

            extern "C" __global__ void __launch_bounds__(%2$d) symplan_kernel(const __grid_constant__ Args args) {
              long long step = (long long)gridDim.x * %2$d;
              for (long long i = (long long)blockIdx.x * %2$d + threadIdx.x; i < %3$d; i += step) {
                %8$s rest = i;
            %4$s    args.to[%5$s] = %6$s;
              }
            }
            """
                .formatted(
                    same ? CTypes.bits(source.bytes()) : CTypes.stored(source),
                    THREADS,
                    count,
                    indices,
                    offset(to.type()),
                    same ? read : converted(source, target, read),
                    same ? CTypes.bits(target.bytes()) : CTypes.stored(target),
                    Indices.number(count));
    return new DeviceStep.Launch(
        stream,
        new Kernel(text),
        Math.clamp(Math.ceilDiv(count, THREADS), 1, MAX_BLOCKS),
        THREADS,
        ImmutableList.of(KernelArgument.Memory.of(rank, from), KernelArgument.Memory.of(rank, to)),
        label);
  }

  private static String converted(DType source, DType target, String stored) {
    return CTypes.narrow(
        target, Pointwise.rounded(target, CTypes.widen(source, stored), CTypes.computed(source)));
  }

  private static String offset(TensorType type) {
    var terms = new StringBuilder("0");
    for (int dim = 0; dim < type.rank(); dim++) {
      terms.append(" + i%d * %d".formatted(dim, type.stride(dim)));
    }
    return terms.toString();
  }
}
