package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/**
 * Ops that go by rows as one: all of them on some of the rows, then on the next ones. What they
 * pass on is only ever there for these.
 */
final class FusedKernel implements Runnable {
  /** Elements of a slice: what is passed on stays in the processor's cache. */
  private static final long SLICE = 16 * 1024;

  private final ImmutableList<Runnable> steps;

  /**
   * @param memory resolves the tensors
   * @param kernels finds an op's implementation
   */
  FusedKernel(Fused fused, HostMemory memory, Function<Part, HostKernel> kernels) {
    var shape = typeOf(fused.parts().getFirst().results().getFirst());
    int axis = 0;
    while (axis < fused.rows() - 1 && shape.size(axis) == 1) {
      axis++;
    }
    long length = fused.rows() == 0 ? 1 : shape.size(axis);
    long elements =
        fused.parts().stream()
            .mapToLong(p -> typeOf(p.results().getFirst()).numel())
            .max()
            .orElse(1);
    long step = Math.clamp(SLICE * length / Math.max(1, elements), 1, length);
    var built = ImmutableList.<Runnable>builder();
    Map<Integer, HostTensor> passed = new HashMap<>();
    for (long from = 0; from < length; from += step) {
      var slice = new Slice(axis, from, Math.min(step, length - from));
      for (var part : fused.parts()) {
        var cut = new Cut(part, slice, memory, passed);
        built.add(kernels.apply(part).prepare(cut.call()));
      }
    }
    this.steps = built.build();
  }

  @Override
  public void run() {
    steps.forEach(Runnable::run);
  }

  private static TensorType typeOf(Operand operand) {
    return switch (operand) {
      case Operand.Tensor(var ref) -> ref.type();
      case Operand.Passed(var _, var type) -> type;
      case Operand.Many _, Operand.Constant _ -> throw new IllegalStateException("no tensor");
    };
  }

  /**
   * Some of the indices of one dimension.
   *
   * @param axis the dimension, among those that make a row
   */
  private record Slice(int axis, long from, long count) {}

  /** One part's call on a slice. */
  private record Cut(Part part, Slice slice, HostMemory memory, Map<Integer, HostTensor> passed) {

    HostCall call() {
      return new HostCall(
          part.def().schema(),
          part.name(),
          part.args().stream().map(this::value).collect(ImmutableList.toImmutableList()),
          part.results().stream()
              .map(result -> Optional.of(tensor(result, slice.axis())))
              .collect(ImmutableList.toImmutableList()),
          Optional.empty());
    }

    private HostCall.Value value(Operand operand) {
      return switch (operand) {
        case Operand.Tensor _, Operand.Passed _ ->
            new HostCall.Value.Tensor(tensor(operand, ownAxis(typeOf(operand))));
        case Operand.Constant(var arg) -> new HostCall.Value.Constant(arg);
        case Operand.Many(var items) ->
            new HostCall.Value.Many(
                items.stream().map(this::value).collect(ImmutableList.toImmutableList()));
      };
    }

    /** The dimension of an operand that the slice is along, or -1 if all of it is read. */
    private int ownAxis(TensorType type) {
      if (part.def().has(OpTrait.ELEMENTWISE)) {
        int own = slice.axis() - (typeOf(part.results().getFirst()).rank() - type.rank());
        return own < 0 || own >= type.rank() || type.size(own) == 1 ? -1 : own;
      }
      return type.rank() == typeOf(first(part.args().getFirst())).rank() ? slice.axis() : -1;
    }

    private static Operand first(Operand operand) {
      return operand instanceof Operand.Many(var items) ? items.getFirst() : operand;
    }

    private HostTensor tensor(Operand operand, int axis) {
      if (operand instanceof Operand.Passed(int index, TensorType type)) {
        // The first slice is the largest: all of them fit into its memory.
        var rows = cut(type, axis).contiguous();
        return passed.computeIfAbsent(index, _ -> HostTensor.allocate(rows)).as(rows);
      }
      var whole = memory.tensor(((Operand.Tensor) operand).ref());
      if (axis < 0 || whole.type().rank() == 0) {
        return whole;
      }
      long skipped = slice.from() * whole.type().stride(axis) * whole.dtype().bytes();
      return new HostTensor(whole.memory().asSlice(skipped), cut(whole.type(), axis));
    }

    private TensorType cut(TensorType type, int axis) {
      if (axis < 0 || type.rank() == 0) {
        return type;
      }
      var sizes = type.sizes().toArray();
      sizes[axis] = slice.count();
      return new TensorType(
          type.dtype(), ImmutableLongArray.copyOf(sizes), type.strides(), type.space());
    }
  }
}
