package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/**
 * Elementwise ops as one: all of them on a slice of the elements, then on the next one. What they
 * pass on is only ever there for one slice.
 */
final class FusedKernel implements Runnable {
  /** Elements of a slice: what is passed on stays in the processor's cache. */
  private static final long SLICE = 16 * 1024;

  private record Step(HostKernel kernel, HostCall call) {}

  private final ImmutableList<Step> steps;

  /**
   * @param memory resolves the tensors
   * @param kernels finds an op's implementation
   */
  FusedKernel(Fused fused, HostMemory memory, Function<Part, HostKernel> kernels) {
    var shape = typeOf(fused.parts().getFirst().result());
    int axis = 0;
    while (axis < shape.rank() - 1 && shape.size(axis) == 1) {
      axis++;
    }
    long rows = shape.rank() == 0 ? 1 : shape.size(axis);
    long step = Math.clamp(SLICE * rows / Math.max(1, shape.numel()), 1, Math.max(1, rows));
    var built = ImmutableList.<Step>builder();
    Map<Integer, HostTensor> passed = new HashMap<>();
    for (long from = 0; from < rows; from += step) {
      var slice = new Slice(shape.rank(), axis, from, Math.min(step, rows - from));
      for (var part : fused.parts()) {
        var args =
            part.args().stream()
                .map(arg -> value(arg, memory, slice, passed))
                .collect(ImmutableList.toImmutableList());
        var call =
            new HostCall(
                part.def().schema(),
                part.name(),
                args,
                ImmutableList.of(Optional.of(tensor(part.result(), memory, slice, passed))),
                Optional.empty());
        built.add(new Step(kernels.apply(part), call));
      }
    }
    this.steps = built.build();
  }

  @Override
  public void run() {
    for (var step : steps) {
      step.kernel().run(step.call());
    }
  }

  private static TensorType typeOf(Operand operand) {
    return switch (operand) {
      case Operand.Tensor(var ref) -> ref.type();
      case Operand.Passed(var _, var type) -> type;
      case Operand.Many _, Operand.Constant _ -> throw new IllegalStateException("no tensor");
    };
  }

  private static HostCall.Value value(
      Operand operand, HostMemory memory, Slice slice, Map<Integer, HostTensor> passed) {
    return switch (operand) {
      case Operand.Tensor _, Operand.Passed _ ->
          new HostCall.Value.Tensor(tensor(operand, memory, slice, passed));
      case Operand.Constant(var arg) -> new HostCall.Value.Constant(arg);
      case Operand.Many _ -> throw new IllegalStateException("an elementwise op takes no lists");
    };
  }

  private static HostTensor tensor(
      Operand operand, HostMemory memory, Slice slice, Map<Integer, HostTensor> passed) {
    if (operand instanceof Operand.Passed(int index, TensorType type)) {
      // The first slice is the largest: all of them fit into its memory.
      var rows = slice.of(type).contiguous();
      return passed.computeIfAbsent(index, _ -> HostTensor.allocate(rows)).as(rows);
    }
    return slice.of(memory.tensor(((Operand.Tensor) operand).ref()));
  }

  /**
   * Some rows of a shape.
   *
   * @param rank of the shape
   */
  private record Slice(int rank, int axis, long from, long rows) {

    /** {@return the same rows of what broadcasts to the shape} */
    HostTensor of(HostTensor tensor) {
      int own = ownAxis(tensor.type());
      if (own < 0) {
        return tensor;
      }
      long skipped = from * tensor.type().stride(own) * tensor.dtype().bytes();
      return new HostTensor(tensor.memory().asSlice(skipped), of(tensor.type()));
    }

    TensorType of(TensorType type) {
      int own = ownAxis(type);
      if (own < 0) {
        return type;
      }
      var sizes = type.sizes().toArray();
      sizes[own] = rows;
      return new TensorType(
          type.dtype(), ImmutableLongArray.copyOf(sizes), type.strides(), type.space());
    }

    /** The axis of a tensor that its rows are along, or -1 where all rows are the same. */
    private int ownAxis(TensorType type) {
      int own = axis - (rank - type.rank());
      return own < 0 || own >= type.rank() || type.size(own) == 1 ? -1 : own;
    }
  }
}
