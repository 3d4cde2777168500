package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.HostTensor;

/** Interpolation of images, one dimension after the other, and its gradients. */
final class UpsampleKernels {

  /** How a dimension is read: each place is a mix of two elements. */
  private record Line(long[] low, long[] high, double[] share) {

    static Line nearest(long from, long to, double factor) {
      var line = new Line(new long[(int) to], new long[(int) to], new double[(int) to]);
      // In f32 as PyTorch has it: which element is nearest depends on the rounding.
      float scale = factor > 0 ? (float) (1 / factor) : (float) from / to;
      for (int i = 0; i < to; i++) {
        line.low[i] = Math.min((long) Math.floor(i * scale), from - 1);
        line.high[i] = line.low[i];
      }
      return line;
    }

    static Line linear(long from, long to, double factor, boolean alignCorners) {
      var line = new Line(new long[(int) to], new long[(int) to], new double[(int) to]);
      double scale =
          alignCorners
              ? to > 1 ? (double) (from - 1) / (to - 1) : 0
              : factor > 0 ? 1 / factor : (double) from / to;
      for (int i = 0; i < to; i++) {
        double at = alignCorners ? scale * i : Math.max(0, scale * (i + 0.5) - 0.5);
        line.low[i] = Math.min((long) at, from - 1);
        line.high[i] = Math.min(line.low[i] + 1, from - 1);
        line.share[i] = Math.clamp(at - line.low[i], 0.0, 1.0);
      }
      return line;
    }

    /** {@return the tensor with this dimension resized} */
    HostTensor apply(HostTensor tensor, int dim) {
      var result = resized(tensor, dim, low.length);
      for (int i = 0; i < low.length; i++) {
        double part = share[i];
        var target = Views.select(result, dim, i);
        if (low[i] == high[i]) {
          target.copyFrom(Views.select(tensor, dim, low[i]));
        } else {
          Pointwise.apply(
              target,
              Pointwise.binary((a, b) -> (1 - part) * a + part * b),
              Views.select(tensor, dim, low[i]),
              Views.select(tensor, dim, high[i]));
        }
      }
      return result;
    }

    /** {@return the gradient of what was resized} */
    HostTensor transposed(HostTensor grad, int dim, long size) {
      var result = resized(grad, dim, size);
      for (int i = 0; i < low.length; i++) {
        double part = share[i];
        var source = Views.select(grad, dim, i);
        var first = Views.select(result, dim, low[i]);
        var second = Views.select(result, dim, high[i]);
        Pointwise.apply(first, Pointwise.binary((x, g) -> x + (1 - part) * g), first, source);
        if (part != 0) {
          Pointwise.apply(second, Pointwise.binary((x, g) -> x + part * g), second, source);
        }
      }
      return result;
    }

    private static HostTensor resized(HostTensor tensor, int dim, long size) {
      var sizes = tensor.type().sizes().toArray();
      sizes[dim] = size;
      return HostTensor.allocate(TensorType.contiguous(DType.F64, sizes));
    }
  }

  private UpsampleKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    return ImmutableMap.<String, HostKernel>builder()
        .put("aten::upsample_nearest2d", call -> forward(call, "self", true))
        .put("aten::upsample_bilinear2d", call -> forward(call, "self", false))
        .put("aten::upsample_nearest2d.vec", call -> forward(call, "input", true))
        .put("aten::upsample_bilinear2d.vec", call -> forward(call, "input", false))
        .put("aten::upsample_nearest2d_backward", call -> backward(call, true))
        .put("aten::upsample_bilinear2d_backward", call -> backward(call, false))
        .buildOrThrow();
  }

  private static Line line(HostCall call, int dim, long from, long to, boolean nearest) {
    double factor = factor(call, dim);
    return nearest
        ? Line.nearest(from, to, factor)
        : Line.linear(from, to, factor, call.bool("align_corners"));
  }

  /** {@return how much a dimension grows by, where the call says so; else 0} */
  private static double factor(HostCall call, int dim) {
    if (!call.hasParam("scale_factors")) {
      var param = dim == 0 ? "scales_h" : "scales_w";
      return call.has(param) ? call.number(param) : 0;
    }
    return call.value("scale_factors") instanceof Value.Constant(Arg.Seq(ImmutableList<Arg> items))
            && items.get(dim) instanceof Arg.Float(double factor)
        ? factor
        : 0;
  }

  private static void forward(HostCall call, String param, boolean nearest) {
    var image = call.tensor(param);
    var result = call.result();
    for (int dim = 0; dim < 2; dim++) {
      long from = image.type().size(dim + 2);
      long to = result.type().size(dim + 2);
      image = line(call, dim, from, to, nearest).apply(image, dim + 2);
    }
    result.copyFrom(image);
  }

  private static void backward(HostCall call, boolean nearest) {
    var grad = call.tensor("grad_output");
    var result = call.result();
    for (int dim = 0; dim < 2; dim++) {
      long from = result.type().size(dim + 2);
      long to = grad.type().size(dim + 2);
      grad = line(call, dim, from, to, nearest).transposed(grad, dim + 2, from);
    }
    result.copyFrom(grad);
  }
}
