package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;

/** Padding with elements of the tensor itself, and its gradients. */
final class PadKernels {

  /** Which element stands beyond the edges. */
  enum Mode {
    /** The mirrored one; that at the edge is not repeated. */
    REFLECT,
    /** That at the edge. */
    REPLICATE,
    /** That at the other end. */
    CIRCULAR;

    static Mode of(String name) {
      return switch (name) {
        case "reflect" -> REFLECT;
        case "replicate" -> REPLICATE;
        case "circular" -> CIRCULAR;
        default -> throw new HostKernelException("there is no padding mode '" + name + "'");
      };
    }

    /** {@return which of {@code size} elements stands at a place that may be outside} */
    long source(long place, long size) {
      return switch (this) {
        case REFLECT -> {
          long inside = Math.abs(place);
          yield inside < size ? inside : 2 * (size - 1) - inside;
        }
        case REPLICATE -> Math.clamp(place, 0, size - 1);
        case CIRCULAR -> Math.floorMod(place, size);
      };
    }
  }

  private PadKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (int dims = 1; dims <= 3; dims++) {
      for (var mode : new Mode[] {Mode.REFLECT, Mode.REPLICATE}) {
        var name =
            "aten::%s_pad%dd".formatted(mode == Mode.REFLECT ? "reflection" : "replication", dims);
        table.put(name, call -> pad(call, "padding", mode));
        table.put(name + "_backward", call -> backward(call, mode));
      }
    }
    return table.buildOrThrow();
  }

  /** The numbers count from the last dimension: before, after, before, after … */
  static void pad(HostCall call, String param, Mode mode) {
    if (call.result().type().numel() == 0) {
      return;
    }
    var pad = call.integers(param);
    var padded = call.tensor("self");
    for (int i = 0; i < pad.length() / 2; i++) {
      int dim = padded.type().rank() - 1 - i;
      long before = pad.get(2 * i);
      long after = pad.get(2 * i + 1);
      long wide = before + padded.type().size(dim) + after;
      if (mode == Mode.CIRCULAR) {
        // What is cut off does not come back at the other end.
        long cut = Math.max(0, -before);
        padded =
            Views.narrow(padded, dim, cut, padded.type().size(dim) - cut - Math.max(0, -after));
        before = Math.max(0, before);
      }
      long size = padded.type().size(dim);
      var next = resized(padded, dim, wide, padded.dtype());
      for (long at = 0; at < wide; at++) {
        Views.select(next, dim, at)
            .copyFrom(Views.select(padded, dim, mode.source(at - before, size)));
      }
      padded = next;
    }
    call.result().copyFrom(padded);
  }

  private static void backward(HostCall call, Mode mode) {
    var pad = call.integers("padding");
    var sum =
        HostTensor.allocate(call.tensor("grad_output").type().contiguous().withDType(DType.F64));
    sum.copyFrom(call.tensor("grad_output"));
    for (int i = 0; i < pad.length() / 2; i++) {
      int dim = sum.type().rank() - 1 - i;
      long before = pad.get(2 * i);
      long size = call.result().type().size(dim);
      var next = resized(sum, dim, size, DType.F64);
      for (long at = 0; at < sum.type().size(dim); at++) {
        var target = Views.select(next, dim, mode.source(at - before, size));
        Pointwise.apply(target, Pointwise.binary(Double::sum), target, Views.select(sum, dim, at));
      }
      sum = next;
    }
    call.result().copyFrom(sum);
  }

  /** {@return memory for a tensor of zeros with one size changed} */
  private static HostTensor resized(HostTensor tensor, int dim, long size, DType dtype) {
    var sizes = tensor.type().sizes().toArray();
    sizes[dim] = size;
    return HostTensor.allocate(TensorType.contiguous(dtype, sizes));
  }
}
