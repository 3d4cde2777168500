package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Arrays;
import java.util.Optional;

/**
 * Layer, rms and group norms and their gradients.
 *
 * <p>All normalize rows of a row-major matrix; statistics are one number for each row. Results are
 * rounded once.
 */
final class NormKernels {

  private NormKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    return ImmutableMap.<String, HostKernel>builder()
        .put("aten::native_layer_norm_backward", call -> layerNormBackward(call, true))
        .put("aten::_fused_rms_norm_backward", call -> layerNormBackward(call, false))
        .put("aten::native_group_norm", NormKernels::nativeGroupNorm)
        .put("aten::group_norm", NormKernels::groupNorm)
        .put("aten::native_group_norm_backward", NormKernels::groupNormBackward)
        .buildOrThrow();
  }

  /** A tensor as a row-major matrix in doubles. */
  private static double[] load(HostTensor tensor) {
    var flat = Views.flat(tensor);
    var values = new double[Math.toIntExact(flat.type().numel())];
    Elements.load(flat.memory(), 0, flat.dtype().bytes(), flat.dtype(), values, values.length);
    return values;
  }

  private static double[] load(Optional<HostTensor> tensor) {
    return tensor.map(NormKernels::load).orElseGet(() -> new double[0]);
  }

  private static void store(HostCall call, int index, double[] values) {
    if (index < call.resultCount() && call.hasResult(index)) {
      store(call.result(index), values);
    }
  }

  private static void store(HostTensor tensor, double[] values) {
    var flat = HostTensor.allocate(TensorType.contiguous(tensor.dtype(), values.length));
    Elements.store(values, values.length, flat.memory(), 0, tensor.dtype().bytes(), tensor.dtype());
    tensor.copyFrom(flat.as(tensor.type().contiguous()));
  }

  private static int product(ImmutableLongArray sizes) {
    return Math.toIntExact(sizes.stream().reduce(1, (a, b) -> a * b));
  }

  /**
   * Mean and reciprocal deviation of each row.
   *
   * @param centred whether the mean is taken off; else it stays 0
   */
  private record Statistics(double[] mean, double[] rstd) {
    static Statistics of(double[] x, int width, double eps, boolean centred) {
      return of(x, width == 0 ? 0 : x.length / width, width, eps, centred);
    }

    /** As PyTorch has it, rows of nothing have the mean 0 and no deviation. */
    static Statistics of(double[] x, int rows, int width, double eps, boolean centred) {
      var mean = new double[rows];
      var rstd = new double[rows];
      if (width == 0) {
        Arrays.fill(rstd, Double.NaN);
        return new Statistics(mean, rstd);
      }
      for (int row = 0; row < rows; row++) {
        double sum = 0;
        for (int i = 0; centred && i < width; i++) {
          sum += x[row * width + i];
        }
        mean[row] = sum / width;
        double squares = 0;
        for (int i = 0; i < width; i++) {
          double distance = x[row * width + i] - mean[row];
          squares += distance * distance;
        }
        rstd[row] = 1 / Math.sqrt(squares / width + eps);
      }
      return new Statistics(mean, rstd);
    }
  }

  private static void layerNormBackward(HostCall call, boolean centred) {
    int width = product(call.integers("normalized_shape"));
    var dy = load(call.tensor("grad_out"));
    var x = load(call.tensor("input"));
    var weight = load(call.optionalTensor("weight"));
    var rstd = load(call.tensor("rstd"));
    var mean = centred ? load(call.tensor("mean")) : new double[rstd.length];
    var dweight = new double[width];
    var dbias = new double[width];
    var dx = new double[x.length];
    for (int row = 0; row < rstd.length; row++) {
      int start = row * width;
      double sum = 0;
      double projection = 0;
      for (int i = 0; i < width; i++) {
        double normal = (x[start + i] - mean[row]) * rstd[row];
        double scaled = dy[start + i] * (weight.length == 0 ? 1 : weight[i]);
        sum += centred ? scaled : 0;
        projection += scaled * normal;
        dweight[i] += dy[start + i] * normal;
        dbias[i] += dy[start + i];
      }
      for (int i = 0; i < width; i++) {
        double normal = (x[start + i] - mean[row]) * rstd[row];
        double scaled = dy[start + i] * (weight.length == 0 ? 1 : weight[i]);
        dx[start + i] = rstd[row] * (scaled - (sum + normal * projection) / width);
      }
    }
    store(call, 0, dx);
    store(call, 1, dweight);
    if (centred) {
      store(call, 2, dbias);
    }
  }

  private static void nativeGroupNorm(HostCall call) {
    groupNorm(
        call,
        Math.toIntExact(call.integer("C")),
        Math.toIntExact(call.integer("HxW")),
        Math.toIntExact(call.integer("group")));
  }

  private static void groupNorm(HostCall call) {
    var sizes = call.tensor("input").type().sizes();
    groupNorm(
        call,
        Math.toIntExact(sizes.get(1)),
        product(sizes.subArray(2, sizes.length())),
        Math.toIntExact(call.integer("num_groups")));
  }

  private static void groupNorm(HostCall call, int channels, int area, int groups) {
    var input = call.tensor("input");
    int width = channels / groups * area;
    var x = load(input);
    var weight = load(call.optionalTensor("weight"));
    var bias = load(call.optionalTensor("bias"));
    var statistics = Statistics.of(x, width, call.number("eps"), true);
    for (int i = 0; i < x.length; i++) {
      int row = i / width;
      int channel = i / area % channels;
      double value = (x[i] - statistics.mean()[row]) * statistics.rstd()[row];
      value *= weight.length == 0 ? 1 : weight[channel];
      x[i] = bias.length == 0 ? value : value + bias[channel];
    }
    store(call, 0, x);
    store(call, 1, statistics.mean());
    store(call, 2, statistics.rstd());
  }

  private static void groupNormBackward(HostCall call) {
    int channels = Math.toIntExact(call.integer("C"));
    int area = Math.toIntExact(call.integer("HxW"));
    int width = channels / Math.toIntExact(call.integer("group")) * area;
    var dy = load(call.tensor("grad_out"));
    var x = load(call.tensor("input"));
    var mean = load(call.tensor("mean"));
    var rstd = load(call.tensor("rstd"));
    var weight = load(call.optionalTensor("weight"));
    var dweight = new double[channels];
    var dbias = new double[channels];
    var dx = new double[x.length];
    for (int row = 0; row < rstd.length; row++) {
      double sum = 0;
      double projection = 0;
      for (int i = row * width; i < (row + 1) * width; i++) {
        int channel = i / area % channels;
        double normal = (x[i] - mean[row]) * rstd[row];
        double scaled = dy[i] * (weight.length == 0 ? 1 : weight[channel]);
        sum += scaled;
        projection += scaled * normal;
        dweight[channel] += dy[i] * normal;
        dbias[channel] += dy[i];
      }
      for (int i = row * width; i < (row + 1) * width; i++) {
        double normal = (x[i] - mean[row]) * rstd[row];
        double scaled = dy[i] * (weight.length == 0 ? 1 : weight[i / area % channels]);
        dx[i] = rstd[row] * (scaled - (sum + normal * projection) / width);
      }
    }
    store(call, 0, dx);
    store(call, 1, dweight);
    store(call, 2, dbias);
  }
}
