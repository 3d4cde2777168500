package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.runtime.host.HostCall.Value;
import java.util.ArrayList;
import java.util.List;

/** Elementwise ops that choose between values or bound them. */
final class ChoiceKernels {
  private static final Pointwise.Doubles WHERE =
      Pointwise.ternary((condition, a, b) -> condition != 0 ? a : b);
  private static final Pointwise.Longs WHERE_LONGS =
      (in, out, n) -> {
        for (int i = 0; i < n; i++) {
          out[i] = in[0][i] != 0 ? in[1][i] : in[2][i];
        }
      };

  private ChoiceKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var overload : List.of("self", "ScalarSelf", "ScalarOther", "Scalar")) {
      table.put(
          "aten::where." + overload,
          call -> Pointwise.run(call, WHERE, WHERE_LONGS, "condition", "self", "other"));
    }
    for (var overload : List.of("", ".Tensor")) {
      table.put("aten::clamp" + overload, call -> clamp(call, "min", "max"));
      table.put("aten::clamp_min" + overload, call -> clamp(call, "min", ""));
      table.put("aten::clamp_max" + overload, call -> clamp(call, "", "max"));
    }
    for (var overload : List.of("Scalar", "Tensor")) {
      table.put(
          "aten::masked_fill." + overload,
          call -> Pointwise.run(call, WHERE, WHERE_LONGS, "mask", "value", "self"));
      table.put("aten::fill." + overload, call -> CreationKernels.fill(call, "value"));
    }
    table.put("aten::hardtanh", call -> clamp(call, "min_val", "max_val"));
    table.put("aten::nan_to_num", ChoiceKernels::nanToNumber);
    table.put("aten::threshold", ChoiceKernels::threshold);
    table.put("aten::round.decimals", ChoiceKernels::round);
    return table.buildOrThrow();
  }

  /** The upper bound wins where the bounds cross, and NaN stays. */
  private static void clamp(HostCall call, String min, String max) {
    var operands = new ArrayList<String>(List.of("self"));
    boolean low = !min.isEmpty() && isGiven(call, min);
    boolean high = !max.isEmpty() && isGiven(call, max);
    if (low) {
      operands.add(min);
    }
    if (high) {
      operands.add(max);
    }
    int last = operands.size() - 1;
    Pointwise.run(
        call,
        (in, out, n) -> {
          for (int i = 0; i < n; i++) {
            double x = low ? SpecialFunctions.maximum(in[0][i], in[1][i]) : in[0][i];
            out[i] = high ? SpecialFunctions.minimum(x, in[last][i]) : x;
          }
        },
        (in, out, n) -> {
          for (int i = 0; i < n; i++) {
            long x = low ? Math.max(in[0][i], in[1][i]) : in[0][i];
            out[i] = high ? Math.min(x, in[last][i]) : x;
          }
        },
        operands.toArray(String[]::new));
  }

  private static boolean isGiven(HostCall call, String param) {
    return !(call.value(param) instanceof Value.Constant(Arg.None _));
  }

  private static void nanToNumber(HostCall call) {
    double largest = largest(call.result().dtype());
    double nan = call.has("nan") ? call.number("nan") : 0;
    double high = call.has("posinf") ? call.number("posinf") : largest;
    double low = call.has("neginf") ? call.number("neginf") : -largest;
    Pointwise.run(
        call,
        Pointwise.unary(
            x ->
                Double.isNaN(x)
                    ? nan
                    : x == Double.POSITIVE_INFINITY
                        ? high
                        : x == Double.NEGATIVE_INFINITY ? low : x),
        Pointwise.unaryLongs(x -> x),
        "self");
  }

  private static double largest(DType dtype) {
    return switch (dtype) {
      case F64 -> Double.MAX_VALUE;
      case F16 -> 65504;
      case BF16 -> 0x1.FEp127;
      default -> Float.MAX_VALUE;
    };
  }

  private static void threshold(HostCall call) {
    Pointwise.run(
        call,
        Pointwise.ternary((x, threshold, value) -> x <= threshold ? value : x),
        (in, out, n) -> {
          for (int i = 0; i < n; i++) {
            out[i] = in[0][i] <= in[1][i] ? in[2][i] : in[0][i];
          }
        },
        "self",
        "threshold",
        "value");
  }

  private static void round(HostCall call) {
    long decimals = call.integer("decimals");
    boolean wide = call.result().dtype() == DType.F64;
    double scale = Math.pow(10, Math.abs(decimals));
    Pointwise.run(
        call,
        Pointwise.unary(
            x -> {
              double scaled = decimals < 0 ? x / scale : x * scale;
              double rounded = Math.rint(wide ? scaled : (float) scaled);
              return decimals < 0 ? rounded * scale : rounded / scale;
            }),
        Pointwise.unaryLongs(x -> x),
        "self");
  }
}
