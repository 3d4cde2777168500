package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/**
 * Fused ops as one kernel: by elements where all have one shape, else by rows. Where that cannot
 * be, as few as possible in each of several kernels, one op after the other for each row: what is
 * passed on stays within one, if a block has memory for it, or else beside the arenas.
 */
final class FusedLowering {
  private FusedLowering() {}

  /**
   * {@return the steps of a rank for fused ops}
   *
   * @throws UnsupportedOnGpu when there is no CUDA implementation
   */
  static ImmutableList<DeviceStep> lower(int rank, Fused fused) {
    try {
      return ImmutableList.of(together(rank, fused));
    } catch (UnsupportedOnGpu e) {
      return apart(rank, fused);
    }
  }

  private static ImmutableList<DeviceStep> apart(int rank, Fused fused) {
    var steps = ImmutableList.<DeviceStep>builder();
    int from = 0;
    for (int to = 1; to <= fused.parts().size(); to++) {
      if (!passesOn(fused, to)) {
        var parts = fused.parts().subList(from, to);
        if (parts.size() == 1) {
          steps.addAll(LocalLowering.lower(rank, alone(fused, parts.getFirst(), Map.of())));
        } else {
          steps.addAll(inTurn(rank, new Fused(fused.stream(), fused.rows(), parts)));
        }
        from = to;
      }
    }
    return steps.build();
  }

  private static ImmutableList<DeviceStep> inTurn(int rank, Fused fused) {
    try {
      return ImmutableList.of(together(rank, fused));
    } catch (UnsupportedOnGpu e) {
      return fused.parts().stream().anyMatch(FusedLowering::sortsLongRows)
              || !SharedMemoryKernel.fits(fused.rows(), fused.parts())
          ? oneByOne(rank, fused)
          : ImmutableList.of(
              SharedMemoryKernel.launch(rank, fused.stream(), fused.rows(), fused.parts()));
    }
  }

  private static boolean sortsLongRows(Part part) {
    if (!SharedMemoryKernel.sorts(part.def().name().toString())) {
      return false;
    }
    var type = Parts.typeOf(Parts.argument(part, "self").orElseThrow());
    return type.rank() > 0
        && type.size(Parts.dims(part, type.rank()).getFirst()) > LongSort.SHORTEST;
  }

  /** A launch or more for each part, which leaves beside the arenas what it passes on. */
  private static ImmutableList<DeviceStep> oneByOne(int rank, Fused fused) {
    var steps = ImmutableList.<DeviceStep>builder();
    var scratch = new Scratch();
    Map<Operand, TensorRef> passed = new HashMap<>();
    for (var part : fused.parts()) {
      for (var result : part.results()) {
        if (result instanceof Operand.Passed(var _, var type)) {
          passed.put(result, scratch.take(type.contiguous()));
        }
      }
      steps.addAll(LocalLowering.lower(rank, alone(fused, part, passed), scratch));
    }
    return steps.build();
  }

  private static DeviceStep together(int rank, Fused fused) {
    return OneShape.is(fused.parts())
        ? ElementwiseKernel.launch(rank, fused.stream(), fused.parts())
        : RowLowering.fused(rank, fused);
  }

  /** Whether a part before a position passes something on to one after it. */
  private static boolean passesOn(Fused fused, int position) {
    var parts = fused.parts();
    return parts.subList(0, position).stream()
        .flatMap(part -> part.results().stream())
        .filter(Operand.Passed.class::isInstance)
        .anyMatch(
            passed ->
                parts.subList(position, parts.size()).stream()
                    .anyMatch(part -> part.args().contains(passed)));
  }

  private static LocalOp alone(Fused fused, Part part, Map<Operand, TensorRef> passed) {
    return new LocalOp(
        fused.stream(),
        part.def(),
        part.args().stream()
            .map(
                arg ->
                    passed.containsKey(arg)
                        ? new Operand.Tensor(Objects.requireNonNull(passed.get(arg)))
                        : arg)
            .collect(ImmutableList.toImmutableList()),
        part.results().stream()
            .map(
                result ->
                    result instanceof Operand.Tensor(var ref)
                        ? Optional.of(ref)
                        : Optional.ofNullable(passed.get(result)))
            .collect(ImmutableList.toImmutableList()),
        Optional.empty(),
        part.name(),
        part.span());
  }
}
