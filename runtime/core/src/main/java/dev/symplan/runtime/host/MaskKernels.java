package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Ops that a mask or counts steer, and gated linear units. */
final class MaskKernels {
  private MaskKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    return ImmutableMap.of(
        "aten::_unsafe_masked_index",
        MaskKernels::maskedIndex,
        "aten::_unsafe_masked_index_put_accumulate",
        MaskKernels::maskedPut,
        "aten::masked_scatter_backward",
        MaskKernels::scatterBackward,
        "aten::bincount",
        MaskKernels::count,
        "aten::glu",
        MaskKernels::glu,
        "aten::glu_backward",
        MaskKernels::gluBackward);
  }

  /** Where the mask is false, an index may be anything: it is brought into its range. */
  private static List<Optional<HostTensor>> inRange(HostCall call) {
    var self = call.tensor("self");
    var given = call.optionalTensors("indices");
    var indices = new ArrayList<Optional<HostTensor>>();
    for (int dim = 0; dim < given.size(); dim++) {
      long size = self.type().size(dim);
      indices.add(given.get(dim).map(index -> clamped(index, size)));
    }
    return indices;
  }

  private static HostTensor clamped(HostTensor index, long size) {
    var copy = index.copyAs(index.type().contiguous());
    var flat = Views.flat(copy);
    for (long i = 0; i < flat.type().numel(); i++) {
      flat.setLong(Math.clamp(flat.getLong(i), -size, Math.max(-size, size - 1)), i);
    }
    return copy;
  }

  private static void maskedIndex(HostCall call) {
    var result = call.result();
    var found = HostTensor.allocate(result.type().contiguous());
    new IndexedElements(call.tensor("self"), inRange(call)).copyTo(found);
    var fill = CreationKernels.scalar(call, "fill", result.dtype());
    result.copyFrom(found);
    replace(result, Views.expand(call.tensor("mask"), result.type().sizes()), fill);
  }

  /** Sets the elements where the mask is false. */
  private static void replace(HostTensor target, HostTensor mask, HostTensor value) {
    var values = Views.expand(value, target.type().sizes());
    var flatMask = Views.flat(mask);
    var flat = Views.flat(target.contiguous());
    var other = Views.flat(values);
    for (long i = 0; i < flat.type().numel(); i++) {
      if (flatMask.getLong(i) == 0) {
        Views.select(flat, 0, i).copyFrom(Views.select(other, 0, i));
      }
    }
    target.copyFrom(flat.as(target.type().contiguous()));
  }

  private static void maskedPut(HostCall call) {
    var result = call.result();
    result.copyFrom(call.tensor("self"));
    var sum = IndexedElements.sumOf(result);
    var elements = new IndexedElements(sum, inRange(call));
    var given = Views.expand(call.tensor("values"), elements.sizes());
    var values = given.copyAs(given.type().contiguous());
    var zero = HostTensor.allocate(TensorType.contiguous(values.dtype()));
    replace(values, Views.expand(call.tensor("mask"), elements.sizes()), zero);
    elements.add(values);
    if (sum != result) {
      result.copyFrom(sum);
    }
  }

  /** The elements that the mask names, in order, and zeros after them. */
  private static void scatterBackward(HostCall call) {
    var result = HostTensor.allocate(call.result().type().contiguous());
    var flat = Views.flat(result);
    var sizes = Broadcasts.sizes(call.tensor("grad_output"), call.tensor("mask"));
    var grad = Views.flat(Views.expand(call.tensor("grad_output"), sizes));
    var mask = Views.flat(Views.expand(call.tensor("mask"), sizes));
    long next = 0;
    for (long i = 0; i < grad.type().numel(); i++) {
      if (mask.getLong(i) != 0) {
        if (next == flat.type().numel()) {
          throw new HostKernelException(
              "the mask names more elements than the %s of sizes".formatted(next));
        }
        Views.select(flat, 0, next++).copyFrom(Views.select(grad, 0, i));
      }
    }
    call.result().copyFrom(result);
  }

  private static void count(HostCall call) {
    var flat = Views.flat(call.tensor("self"));
    int bins = Math.toIntExact(call.result().type().numel());
    var weights = call.optionalTensor("weights").map(Views::flat);
    var counts = new double[bins];
    for (long i = 0; i < flat.type().numel(); i++) {
      long bin = flat.getLong(i);
      if (bin < 0 || bin >= bins) {
        throw new HostKernelException(
            "value %s at %s is out of range for %s bins".formatted(bin, i, bins));
      }
      long at = i;
      counts[(int) bin] += weights.map(w -> w.get(at)).orElse(1.0);
    }
    for (int i = 0; i < bins; i++) {
      call.result().set(counts[i], i);
    }
  }

  private static HostTensor half(HostTensor tensor, int dim, int which) {
    long size = tensor.type().size(dim) / 2;
    return Views.narrow(tensor, dim, which * size, size);
  }

  private static int dim(HostCall call) {
    return OpCall.wrapDim(call.integer("dim"), call.tensor("self").type().rank(), "dim");
  }

  private static double sigmoid(double x) {
    return 1 / (1 + Math.exp(-x));
  }

  private static void glu(HostCall call) {
    var self = call.tensor("self");
    int dim = dim(call);
    Pointwise.apply(
        call.result(),
        Pointwise.binary((a, gate) -> a * sigmoid(gate)),
        half(self, dim, 0),
        half(self, dim, 1));
  }

  private static void gluBackward(HostCall call) {
    var self = call.tensor("self");
    var grad = call.tensor("grad_output");
    int dim = dim(call);
    Pointwise.apply(
        half(call.result(), dim, 0),
        Pointwise.binary((dy, gate) -> dy * sigmoid(gate)),
        grad,
        half(self, dim, 1));
    Pointwise.apply(
        half(call.result(), dim, 1),
        Pointwise.ternary(
            (dy, a, gate) -> {
              double sigmoid = sigmoid(gate);
              return dy * a * sigmoid * (1 - sigmoid);
            }),
        grad,
        half(self, dim, 0),
        half(self, dim, 1));
  }
}
