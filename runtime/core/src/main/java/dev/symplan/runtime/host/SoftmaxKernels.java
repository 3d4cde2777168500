package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.op.OpCall;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Arrays;
import java.util.List;

/** The softmax family. */
final class SoftmaxKernels {
  private SoftmaxKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var name : List.of("aten::_softmax", "aten::softmax.int", "aten::_safe_softmax")) {
      // Where all is masked, safe_softmax gives 0, the others NaN.
      boolean safe = name.equals("aten::_safe_softmax");
      table.put(name, call -> forEachRow(call, values -> softmax(values, safe)));
    }
    for (var name : List.of("aten::_log_softmax", "aten::log_softmax.int")) {
      table.put(name, call -> forEachRow(call, SoftmaxKernels::logSoftmax));
    }
    table.put("aten::_softmax_backward_data", call -> backward(call, false));
    table.put("aten::_log_softmax_backward_data", call -> backward(call, true));
    table.put("prims::prepare_softmax_online", SoftmaxKernels::prepare);
    return table.buildOrThrow();
  }

  private interface Row {
    void change(double[] values);
  }

  private static void forEachRow(HostCall call, Row row) {
    var self = call.tensor("self");
    AlongDim.forEach(
        dim(call, self),
        List.of(self, call.result()),
        rows -> {
          var values = rows[0].load();
          row.change(values);
          rows[1].store(values);
        });
  }

  private static int dim(HostCall call, HostTensor tensor) {
    return OpCall.wrapDim(call.integer("dim"), tensor.type().rank(), "dim");
  }

  static double max(double[] values) {
    double max = Double.NEGATIVE_INFINITY;
    for (double value : values) {
      max = Math.max(max, value);
    }
    return max;
  }

  static void softmax(double[] values, boolean safe) {
    double max = max(values);
    if (safe && max == Double.NEGATIVE_INFINITY) {
      Arrays.fill(values, 0);
      return;
    }
    double sum = 0;
    for (int i = 0; i < values.length; i++) {
      values[i] = Math.exp(values[i] - max);
      sum += values[i];
    }
    for (int i = 0; i < values.length; i++) {
      values[i] /= sum;
    }
  }

  static void logSoftmax(double[] values) {
    double max = max(values);
    double sum = 0;
    for (double value : values) {
      sum += Math.exp(value - max);
    }
    double log = Math.log(sum);
    for (int i = 0; i < values.length; i++) {
      values[i] = values[i] - max - log;
    }
  }

  private static void backward(HostCall call, boolean log) {
    var grad = call.tensor("grad_output");
    AlongDim.forEach(
        dim(call, grad),
        List.of(grad, call.tensor("output"), call.result()),
        rows -> {
          var dy = rows[0].load();
          var y = rows[1].load();
          double sum = 0;
          for (int i = 0; i < dy.length; i++) {
            sum += log ? dy[i] : dy[i] * y[i];
          }
          for (int i = 0; i < dy.length; i++) {
            dy[i] = log ? dy[i] - Math.exp(y[i]) * sum : (dy[i] - sum) * y[i];
          }
          rows[2].store(dy);
        });
  }

  /** The largest element along a dimension, and the sum of the exponentials relative to it. */
  private static void prepare(HostCall call) {
    var a = call.tensor("a");
    var gone = new boolean[Math.max(1, a.type().rank())];
    gone[dim(call, a)] = true;
    new Reduction(a, gone, true)
        .run(
            new StatisticsKernels.ShiftedExponentials() {
              @Override
              public void finish(long[] index) {
                if (call.hasResult(0)) {
                  call.result(0).set(max(), index);
                }
                if (call.hasResult(1)) {
                  call.result(1).set(sum(), index);
                }
              }
            });
  }
}
