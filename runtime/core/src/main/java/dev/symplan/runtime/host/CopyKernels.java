package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Loops;
import java.util.List;

/** Ops that copy, join or make tensors. */
final class CopyKernels {
  private CopyKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var name : List.of("aten::clone", "aten::_to_copy", "symplan::stage")) {
      table.put(name, call -> call.result().copyFrom(call.tensor("self")));
    }
    table.put(
        "aten::reshape",
        call -> call.result().copyFrom(call.tensor("self").contiguous().as(call.result().type())));
    table.put("aten::copy_", call -> copyInto(call.tensor("self"), call.tensor("src")));
    table.put("aten::cat", CopyKernels::join);
    table.put("aten::stack", CopyKernels::stack);
    table.put("aten::full", call -> fill(call.result(), call.number("fill_value")));
    table.put("aten::full_like", call -> fill(call.result(), call.number("fill_value")));
    table.put("aten::scalar_tensor", call -> fill(call.result(), call.number("s")));
    for (var name : List.of("aten::zeros", "aten::zeros_like")) {
      table.put(name, call -> fill(call.result(), 0));
    }
    for (var name : List.of("aten::ones", "aten::ones_like")) {
      table.put(name, call -> fill(call.result(), 1));
    }
    table.put(
        "prims::iota",
        call -> {
          long start = call.integer("start");
          long step = call.integer("step");
          for (long i = 0; i < call.result().type().numel(); i++) {
            call.result().setLong(start + i * step, i);
          }
        });
    return table.buildOrThrow();
  }

  private static void copyInto(HostTensor target, HostTensor source) {
    var sizes = target.type().sizes().toArray();
    var strides = Loops.byteStrides(source.type(), sizes);
    for (int i = 0; i < strides.length; i++) {
      strides[i] /= source.dtype().bytes();
    }
    target.copyFrom(
        source.as(
            new TensorType(
                source.dtype(),
                target.type().sizes(),
                ImmutableLongArray.copyOf(strides),
                MemorySpace.ANY)));
  }

  private static void join(HostCall call) {
    var result = call.result();
    int dim = OpCall.wrapDim(call.integer("dim"), result.type().rank(), "dim");
    long start = 0;
    for (var tensor : call.tensors("tensors")) {
      part(result, dim, start, tensor.type().size(dim)).copyFrom(tensor);
      start += tensor.type().size(dim);
    }
  }

  /** {@return the elements of {@code tensor} from {@code start} on along one dimension} */
  private static HostTensor part(HostTensor tensor, int dim, long start, long size) {
    var type = tensor.type();
    var sizes = type.sizes().toArray();
    sizes[dim] = size;
    var part =
        new TensorType(
            type.dtype(), ImmutableLongArray.copyOf(sizes), type.strides(), MemorySpace.ANY);
    long offset = part.numel() == 0 ? 0 : start * type.stride(dim) * type.dtype().bytes();
    return new HostTensor(tensor.memory().asSlice(offset), part);
  }

  private static void stack(HostCall call) {
    var result = call.result();
    int dim = OpCall.wrapDim(call.integer("dim"), result.type().rank(), "dim");
    long index = 0;
    for (var tensor : call.tensors("tensors")) {
      var sizes = tensor.type().sizes();
      var slot = part(result, dim, index++, 1);
      var strides = ImmutableLongArray.builder();
      for (int i = 0; i < slot.type().rank(); i++) {
        if (i != dim) {
          strides.add(slot.type().stride(i));
        }
      }
      slot.as(new TensorType(slot.dtype(), sizes, strides.build(), MemorySpace.ANY))
          .copyFrom(tensor);
    }
  }

  private static void fill(HostTensor tensor, double value) {
    var one = HostTensor.allocate(TensorType.contiguous(tensor.dtype()));
    one.set(value);
    copyInto(tensor, one);
  }
}
