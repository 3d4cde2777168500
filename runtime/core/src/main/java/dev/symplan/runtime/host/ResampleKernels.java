package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Arrays;
import java.util.function.LongUnaryOperator;
import java.util.stream.LongStream;

/**
 * Padding with elements of the tensor itself and interpolation, one dimension after the other, and
 * their gradients.
 */
final class ResampleKernels {

  /** How a dimension is read: each index gets a mix of two elements. */
  private static final class Line {
    private final long[] low;
    private final long[] high;
    private final double[] share;

    private Line(long[] low, long[] high, double[] share) {
      this.low = low;
      this.high = high;
      this.share = share;
    }

    /** One element for each index. */
    static Line of(long to, LongUnaryOperator source) {
      var elements = LongStream.range(0, to).map(source).toArray();
      return new Line(elements, elements, new double[elements.length]);
    }

    static Line nearest(long from, long to, double factor) {
      // In f32 as PyTorch has it: which element is nearest depends on the rounding.
      float scale = factor > 0 ? (float) (1 / factor) : (float) from / to;
      return of(to, i -> Math.min((long) Math.floor(i * scale), from - 1));
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
      boolean mixes = !Arrays.equals(low, high);
      var result = resized(tensor, dim, low.length, mixes ? DType.F64 : tensor.dtype());
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
      var result = resized(grad, dim, size, DType.F64);
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

    /** {@return memory for a tensor of zeros with one size changed} */
    private static HostTensor resized(HostTensor tensor, int dim, long size, DType dtype) {
      var sizes = tensor.type().sizes().toArray();
      sizes[dim] = size;
      return HostTensor.allocate(TensorType.contiguous(dtype, sizes));
    }
  }

  /** Which element stands beyond the edges. */
  private enum Padding {
    /** The mirrored one; that at the edge is not repeated. */
    REFLECT,
    /** That at the edge. */
    REPLICATE,
    /** That at the other end. */
    CIRCULAR;

    static Padding of(String name) {
      return switch (name) {
        case "reflect" -> REFLECT;
        case "replicate" -> REPLICATE;
        case "circular" -> CIRCULAR;
        default -> throw new HostKernelException("unknown padding mode '" + name + "'");
      };
    }

    Line line(long size, long before, long after) {
      return Line.of(
          before + size + after,
          switch (this) {
            case REFLECT ->
                i -> {
                  long inside = Math.abs(i - before);
                  return inside < size ? inside : 2 * (size - 1) - inside;
                };
            case REPLICATE -> i -> Math.clamp(i - before, 0, size - 1);
            case CIRCULAR -> {
              // Elements that are cut off do not come back at the other end.
              long cut = Math.max(0, -before);
              long kept = size - cut - Math.max(0, -after);
              yield i -> cut + Math.floorMod(i - Math.max(0, before), kept);
            }
          });
    }
  }

  private ResampleKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table =
        ImmutableMap.<String, HostKernel>builder()
            .put("aten::upsample_nearest2d", call -> resize(call, "self", true))
            .put("aten::upsample_bilinear2d", call -> resize(call, "self", false))
            .put("aten::upsample_nearest2d.vec", call -> resize(call, "input", true))
            .put("aten::upsample_bilinear2d.vec", call -> resize(call, "input", false))
            .put("aten::upsample_nearest2d_backward", call -> resizeBackward(call, true))
            .put("aten::upsample_bilinear2d_backward", call -> resizeBackward(call, false));
    for (int dims = 1; dims <= 3; dims++) {
      put(table, "aten::reflection_pad%sd".formatted(dims), Padding.REFLECT);
      put(table, "aten::replication_pad%sd".formatted(dims), Padding.REPLICATE);
    }
    return table.buildOrThrow();
  }

  private static void put(
      ImmutableMap.Builder<String, HostKernel> table, String name, Padding padding) {
    table.put(name, call -> pad(call, "padding", padding));
    table.put(name + "_backward", call -> padBackward(call, padding));
  }

  /** {@code aten::pad} in a mode other than {@code constant}. */
  static void pad(HostCall call) {
    pad(call, "pad", Padding.of(call.string("mode")));
  }

  /** The numbers count from the last dimension: before, after, before, after … */
  private static void pad(HostCall call, String param, Padding padding) {
    if (call.result().type().numel() == 0) {
      return;
    }
    var pad = call.integers(param);
    var padded = call.tensor("self");
    for (int i = 0; i < pad.length() / 2; i++) {
      int dim = padded.type().rank() - 1 - i;
      padded =
          padding
              .line(padded.type().size(dim), pad.get(2 * i), pad.get(2 * i + 1))
              .apply(padded, dim);
    }
    call.result().copyFrom(padded);
  }

  private static void padBackward(HostCall call, Padding padding) {
    var pad = call.integers("padding");
    var grad = call.tensor("grad_output");
    for (int i = 0; i < pad.length() / 2; i++) {
      int dim = grad.type().rank() - 1 - i;
      long size = call.result().type().size(dim);
      grad = padding.line(size, pad.get(2 * i), pad.get(2 * i + 1)).transposed(grad, dim, size);
    }
    call.result().copyFrom(grad);
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

  private static void resize(HostCall call, String param, boolean nearest) {
    var image = call.tensor(param);
    var result = call.result();
    for (int dim = 0; dim < 2; dim++) {
      long from = image.type().size(dim + 2);
      long to = result.type().size(dim + 2);
      image = line(call, dim, from, to, nearest).apply(image, dim + 2);
    }
    result.copyFrom(image);
  }

  private static void resizeBackward(HostCall call, boolean nearest) {
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
