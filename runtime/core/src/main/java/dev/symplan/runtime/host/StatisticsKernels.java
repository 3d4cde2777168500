package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.List;

/** Variances, norms and log-sum-exp over dimensions. */
final class StatisticsKernels {
  private StatisticsKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var overload : List.of("", ".dim", ".correction")) {
      table.put("aten::var" + overload, call -> variance(call, false, false));
      table.put("aten::std" + overload, call -> variance(call, true, false));
      table.put("aten::var_mean" + overload, call -> variance(call, false, true));
      table.put("aten::std_mean" + overload, call -> variance(call, true, true));
    }
    table.put("aten::linalg_vector_norm", call -> norm(call, "ord"));
    for (var overload : List.of("Scalar", "ScalarOpt_dim", "ScalarOpt_dim_dtype")) {
      table.put("aten::norm." + overload, call -> norm(call, "p"));
    }
    table.put("aten::logsumexp", StatisticsKernels::logSumExp);
    return table.buildOrThrow();
  }

  private static double correction(HostCall call) {
    if (call.hasParam("unbiased")) {
      return call.bool("unbiased") ? 1 : 0;
    }
    return call.has("correction") ? call.number("correction") : 1;
  }

  private static void variance(HostCall call, boolean root, boolean withMean) {
    double correction = correction(call);
    Reduction.of(call)
        .run(
            new Moments() {
              @Override
              public void finish(long[] index) {
                double variance = squares() / Math.max(0, count() - correction);
                if (call.hasResult(0)) {
                  call.result(0).set(root ? Math.sqrt(variance) : variance, index);
                }
                if (withMean && call.hasResult(1)) {
                  call.result(1).set(mean(), index);
                }
              }
            });
  }

  /** Mean and squared distances from it, piece by piece (Chan, Golub, LeVeque 1979). */
  abstract static class Moments implements Reduction.Doubles {
    private double count;
    private double mean;
    private double squares;

    double count() {
      return count;
    }

    double mean() {
      return count == 0 ? Double.NaN : mean;
    }

    double squares() {
      return squares;
    }

    @Override
    public void start() {
      count = 0;
      mean = 0;
      squares = 0;
    }

    @Override
    public void add(double[] values, int n, long first) {
      double sum = 0;
      for (int i = 0; i < n; i++) {
        sum += values[i];
      }
      double own = sum / n;
      double spread = 0;
      for (int i = 0; i < n; i++) {
        spread += (values[i] - own) * (values[i] - own);
      }
      double distance = own - mean;
      double total = count + n;
      mean += distance * n / total;
      squares += spread + distance * distance * count * n / total;
      count = total;
    }
  }

  private static void norm(HostCall call, String order) {
    double p = call.has(order) ? call.number(order) : 2;
    var reduction = Reduction.of(call);
    var result = call.result();
    if (p == Double.POSITIVE_INFINITY) {
      ReductionKernels.fold(reduction, result, 0, (a, x) -> Math.max(a, Math.abs(x)), a -> a);
    } else if (p == Double.NEGATIVE_INFINITY) {
      ReductionKernels.fold(
          reduction, result, Double.POSITIVE_INFINITY, (a, x) -> Math.min(a, Math.abs(x)), a -> a);
    } else if (p == 0) {
      ReductionKernels.fold(reduction, result, 0, (a, x) -> x != 0 ? a + 1 : a, a -> a);
    } else if (p == 1) {
      ReductionKernels.fold(reduction, result, 0, (a, x) -> a + Math.abs(x), a -> a);
    } else if (p == 2) {
      ReductionKernels.fold(reduction, result, 0, (a, x) -> a + x * x, Math::sqrt);
    } else {
      ReductionKernels.fold(
          reduction, result, 0, (a, x) -> a + Math.pow(Math.abs(x), p), a -> Math.pow(a, 1 / p));
    }
  }

  private static void logSumExp(HostCall call) {
    var result = call.result();
    Reduction.of(call)
        .run(
            new ShiftedExponentials() {
              @Override
              public void finish(long[] index) {
                result.set(Double.isInfinite(max()) ? max() : max() + Math.log(sum()), index);
              }
            });
  }

  /** The largest element, and the sum of the exponentials of the distances from it. */
  abstract static class ShiftedExponentials implements Reduction.Doubles {
    private double max;
    private double sum;

    double max() {
      return max;
    }

    double sum() {
      return sum;
    }

    @Override
    public void start() {
      max = Double.NEGATIVE_INFINITY;
      sum = 0;
    }

    @Override
    public void add(double[] values, int count, long first) {
      double before = max;
      for (int i = 0; i < count; i++) {
        max = Math.max(max, values[i]);
      }
      sum *= before == max ? 1 : Math.exp(before - max);
      for (int i = 0; i < count; i++) {
        sum += values[i] == max ? 1 : Math.exp(values[i] - max);
      }
    }
  }

  /** Rounds as the statistics of 16-bit floats are kept: in f32. */
  static DType statisticsType(HostTensor tensor) {
    return tensor.dtype().bytes() < 4 ? DType.F32 : tensor.dtype();
  }
}
