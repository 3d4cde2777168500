package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.expr.SpecialFunctions;
import dev.symplan.ir.op.OpCall;
import java.util.List;
import java.util.function.DoubleBinaryOperator;
import java.util.function.LongBinaryOperator;

/** Running sums, products and extremes along a dimension. */
final class ScanKernels {
  private ScanKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    return ImmutableMap.of(
        "aten::logcumsumexp",
        call -> scan(call, SpecialFunctions::logAddExp, Long::sum),
        "aten::cummax",
        call -> extremes(call, true),
        "aten::cummin",
        call -> extremes(call, false));
  }

  private static int dim(HostCall call) {
    return OpCall.wrapDim(call.integer("dim"), call.tensor("self").type().rank(), "dim");
  }

  private static void scan(HostCall call, DoubleBinaryOperator doubles, LongBinaryOperator longs) {
    boolean floats = call.result().dtype().isFloat() || call.tensor("self").dtype().isFloat();
    AlongDim.forEach(
        dim(call),
        List.of(call.tensor("self"), call.result()),
        rows -> {
          if (floats) {
            var values = rows[0].load();
            for (int i = 1; i < values.length; i++) {
              values[i] = doubles.applyAsDouble(values[i - 1], values[i]);
            }
            rows[1].store(values);
          } else {
            var values = rows[0].loadLongs();
            for (int i = 1; i < values.length; i++) {
              values[i] = longs.applyAsLong(values[i - 1], values[i]);
            }
            rows[1].store(values);
          }
        });
  }

  /** The last of equal elements counts; a NaN stays. */
  private static void extremes(HostCall call, boolean largest) {
    var self = call.tensor("self");
    AlongDim.forEach(
        dim(call),
        List.of(self, call.result(0), call.result(1)),
        rows -> {
          var indices =
              self.dtype().isFloat()
                  ? bestSoFar(rows[0].load(), largest)
                  : bestSoFar(rows[0].loadOrdered(), largest);
          for (int i = 0; i < indices.length; i++) {
            rows[1].copy(i, rows[0], indices[i]);
          }
          rows[2].store(indices);
        });
  }

  private static long[] bestSoFar(double[] values, boolean largest) {
    var indices = new long[values.length];
    int best = 0;
    for (int i = 0; i < values.length; i++) {
      boolean better =
          Double.isNaN(values[i])
              || (largest ? values[i] >= values[best] : values[i] <= values[best]);
      best = better ? i : best;
      indices[i] = best;
    }
    return indices;
  }

  private static long[] bestSoFar(long[] values, boolean largest) {
    var indices = new long[values.length];
    int best = 0;
    for (int i = 0; i < values.length; i++) {
      best = (largest ? values[i] >= values[best] : values[i] <= values[best]) ? i : best;
      indices[i] = best;
    }
    return indices;
  }
}
