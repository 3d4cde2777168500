package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Loops;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.DoubleBinaryOperator;
import java.util.function.DoubleUnaryOperator;
import java.util.function.LongBinaryOperator;
import java.util.function.LongUnaryOperator;
import org.apache.commons.numbers.gamma.Erf;
import org.apache.commons.numbers.gamma.Erfc;

/**
 * Elementwise ops: a table of scalar functions and one engine.
 *
 * <p>Floats are computed in double and rounded once to f32, then to the result's type, which is
 * PyTorch's result for its own computation in f32 or a neighbour of it; integers and bools in 64
 * bits.
 */
final class ElementwiseKernels {

  /** What one row does in doubles. */
  private interface Doubles {
    void run(double[][] in, double[] out, int count);
  }

  /** What one row does in longs. */
  private interface Longs {
    void run(long[][] in, long[] out, int count);
  }

  private final ImmutableMap.Builder<String, HostKernel> table = ImmutableMap.builder();

  private ElementwiseKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var kernels = new ElementwiseKernels();
    kernels.unaries();
    kernels.arithmetic();
    kernels.comparisons();
    kernels.others();
    return kernels.table.buildOrThrow();
  }

  private void unaries() {
    both("neg", x -> -x, x -> -x);
    both("abs", Math::abs, Math::abs);
    both("relu", x -> x < 0 ? 0 : x, x -> Math.max(x, 0));
    both("sign", x -> Double.isNaN(x) ? 0 : Math.signum(x), Long::signum);
    both("square", x -> x * x, x -> x * x);
    both("floor", Math::floor, x -> x);
    both("ceil", Math::ceil, x -> x);
    both("round", Math::rint, x -> x);
    both("trunc", x -> x < 0 ? Math.ceil(x) : Math.floor(x), x -> x);
    both("positive", x -> x, x -> x);
    floats("exp", Math::exp);
    floats("exp2", x -> Math.pow(2, x));
    floats("expm1", Math::expm1);
    floats("log", Math::log);
    floats("log2", x -> Math.log(x) / Math.log(2));
    floats("log10", Math::log10);
    floats("log1p", Math::log1p);
    floats("sqrt", Math::sqrt);
    floats("rsqrt", x -> 1 / Math.sqrt(x));
    floats("sin", Math::sin);
    floats("cos", Math::cos);
    floats("tan", Math::tan);
    floats("asin", Math::asin);
    floats("acos", Math::acos);
    floats("atan", Math::atan);
    floats("sinh", Math::sinh);
    floats("cosh", Math::cosh);
    floats("tanh", Math::tanh);
    floats("sigmoid", ElementwiseKernels::sigmoid);
    floats("log_sigmoid", x -> Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x))));
    floats("silu", x -> x * sigmoid(x));
    floats("erf", Erf::value);
    floats("erfc", Erfc::value);
    floats("reciprocal", x -> 1 / x);
    both("isnan", x -> Double.isNaN(x) ? 1 : 0, x -> 0);
    both("isinf", x -> Double.isInfinite(x) ? 1 : 0, x -> 0);
    both("isfinite", x -> Double.isFinite(x) ? 1 : 0, x -> 1);
    both("logical_not", x -> x == 0 ? 1 : 0, x -> x == 0 ? 1 : 0);
    table.put(
        "aten::bitwise_not",
        call -> {
          boolean bool = call.tensor("self").dtype() == DType.BOOL;
          runLongs(call, unaryLongs(bool ? x -> 1 - x : x -> ~x), "self");
        });
    table.put(
        "aten::gelu",
        call -> {
          boolean tanh = call.string("approximate").equals("tanh");
          runDoubles(
              call, unary(tanh ? ElementwiseKernels::geluTanh : ElementwiseKernels::gelu), "self");
        });
  }

  private static double sigmoid(double x) {
    return 1 / (1 + Math.exp(-x));
  }

  private static double gelu(double x) {
    return 0.5 * x * (1 + Erf.value(x * Math.sqrt(0.5)));
  }

  private static double geluTanh(double x) {
    return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)));
  }

  private void arithmetic() {
    scaled("add", (a, b) -> a + b, (a, b) -> a + b);
    scaled("sub", (a, b) -> a - b, (a, b) -> a - b);
    scaled("rsub", (a, b) -> b - a, (a, b) -> b - a);
    pair("mul", (a, b) -> a * b, (a, b) -> a * b);
    for (var name : new String[] {"div.Tensor", "div.Scalar"}) {
      table.put(
          "aten::" + name, call -> runDoubles(call, binary((a, b) -> a / b), "self", "other"));
    }
    pair("remainder", ElementwiseKernels::remainder, Math::floorMod);
    pair("fmod", (a, b) -> a % b, (a, b) -> a % b);
    plain("maximum", ElementwiseKernels::maximum, Math::max);
    plain("minimum", ElementwiseKernels::minimum, Math::min);
    plain("floor_divide", (a, b) -> Math.floor(a / b), Math::floorDiv);
    pair("bitwise_and", ElementwiseKernels::noFloats, (a, b) -> a & b);
    pair("bitwise_or", ElementwiseKernels::noFloats, (a, b) -> a | b);
    pair("bitwise_xor", ElementwiseKernels::noFloats, (a, b) -> a ^ b);
    for (var name : new String[] {"pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar"}) {
      table.put(
          "aten::" + name,
          call ->
              run(
                  call,
                  binary(Math::pow),
                  binaryLongs(ElementwiseKernels::power),
                  "self",
                  "exponent"));
    }
  }

  /** Python's sign rule: the result has the divisor's sign. */
  private static double remainder(double a, double b) {
    double rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }

  private static double maximum(double a, double b) {
    return Double.isNaN(a) || Double.isNaN(b) ? Double.NaN : Math.max(a, b);
  }

  private static double minimum(double a, double b) {
    return Double.isNaN(a) || Double.isNaN(b) ? Double.NaN : Math.min(a, b);
  }

  private static double noFloats(double a, double b) {
    throw new IllegalArgumentException("bitwise ops take integers");
  }

  private static long power(long base, long exponent) {
    if (exponent < 0) {
      throw new IllegalArgumentException("integers to negative integer powers are not allowed");
    }
    long result = 1;
    long square = base;
    for (long rest = exponent; rest > 0; rest >>= 1) {
      result *= (rest & 1) == 1 ? square : 1;
      square *= square;
    }
    return result;
  }

  private void comparisons() {
    pair("eq", (a, b) -> a == b ? 1 : 0, (a, b) -> a == b ? 1 : 0);
    pair("ne", (a, b) -> a != b ? 1 : 0, (a, b) -> a != b ? 1 : 0);
    pair("lt", (a, b) -> a < b ? 1 : 0, (a, b) -> a < b ? 1 : 0);
    pair("le", (a, b) -> a <= b ? 1 : 0, (a, b) -> a <= b ? 1 : 0);
    pair("gt", (a, b) -> a > b ? 1 : 0, (a, b) -> a > b ? 1 : 0);
    pair("ge", (a, b) -> a >= b ? 1 : 0, (a, b) -> a >= b ? 1 : 0);
    plain("logical_and", (a, b) -> a != 0 && b != 0 ? 1 : 0, (a, b) -> a != 0 && b != 0 ? 1 : 0);
    plain("logical_or", (a, b) -> a != 0 || b != 0 ? 1 : 0, (a, b) -> a != 0 || b != 0 ? 1 : 0);
    plain(
        "logical_xor",
        (a, b) -> (a != 0) != (b != 0) ? 1 : 0,
        (a, b) -> (a != 0) != (b != 0) ? 1 : 0);
  }

  private void others() {
    table.put(
        "aten::where.self",
        call ->
            run(
                call,
                (in, out, n) -> {
                  for (int i = 0; i < n; i++) {
                    out[i] = in[0][i] != 0 ? in[1][i] : in[2][i];
                  }
                },
                (in, out, n) -> {
                  for (int i = 0; i < n; i++) {
                    out[i] = in[0][i] != 0 ? in[1][i] : in[2][i];
                  }
                },
                "condition",
                "self",
                "other"));
    table.put("aten::clamp", call -> clamp(call, "min", "max"));
    table.put("aten::clamp_min", call -> clamp(call, "min", ""));
    table.put("aten::clamp_max", call -> clamp(call, "", "max"));
    table.put("prims::convert_element_type", call -> call.result().copyFrom(call.tensor("a")));
  }

  private static void clamp(HostCall call, String min, String max) {
    double low = !min.isEmpty() && call.has(min) ? call.number(min) : Double.NEGATIVE_INFINITY;
    double high = !max.isEmpty() && call.has(max) ? call.number(max) : Double.POSITIVE_INFINITY;
    // The upper bound wins where the bounds cross, and NaN stays.
    run(
        call,
        unary(x -> Double.isNaN(x) ? x : Math.min(Math.max(x, low), high)),
        unaryLongs(x -> (long) Math.min(Math.max(x, low), high)),
        "self");
  }

  private void both(String name, DoubleUnaryOperator doubles, LongUnaryOperator longs) {
    table.put("aten::" + name, call -> run(call, unary(doubles), unaryLongs(longs), "self"));
  }

  private void floats(String name, DoubleUnaryOperator doubles) {
    table.put("aten::" + name, call -> runDoubles(call, unary(doubles), "self"));
  }

  /** Overloads with a tensor and a number. */
  private void pair(String name, DoubleBinaryOperator doubles, LongBinaryOperator longs) {
    for (var overload : new String[] {".Tensor", ".Scalar"}) {
      table.put(
          "aten::" + name + overload,
          call -> run(call, binary(doubles), binaryLongs(longs), "self", "other"));
    }
  }

  private void plain(String name, DoubleBinaryOperator doubles, LongBinaryOperator longs) {
    table.put(
        "aten::" + name, call -> run(call, binary(doubles), binaryLongs(longs), "self", "other"));
  }

  /** Sums whose second operand is multiplied by alpha. */
  private void scaled(String name, DoubleBinaryOperator doubles, LongBinaryOperator longs) {
    for (var overload : new String[] {".Tensor", ".Scalar"}) {
      table.put(
          "aten::" + name + overload,
          call -> {
            double alpha = call.number("alpha");
            boolean rsub = name.equals("rsub");
            // rsub is other - alpha * self.
            DoubleBinaryOperator f =
                alpha == 1
                    ? doubles
                    : rsub
                        ? (a, b) -> doubles.applyAsDouble(alpha * a, b)
                        : (a, b) -> doubles.applyAsDouble(a, alpha * b);
            long whole = (long) alpha;
            LongBinaryOperator g =
                rsub
                    ? (a, b) -> longs.applyAsLong(whole * a, b)
                    : (a, b) -> longs.applyAsLong(a, whole * b);
            run(call, binary(f), binaryLongs(g), "self", "other");
          });
    }
  }

  private static Doubles unary(DoubleUnaryOperator f) {
    return (in, out, n) -> {
      for (int i = 0; i < n; i++) {
        out[i] = f.applyAsDouble(in[0][i]);
      }
    };
  }

  private static Longs unaryLongs(LongUnaryOperator f) {
    return (in, out, n) -> {
      for (int i = 0; i < n; i++) {
        out[i] = f.applyAsLong(in[0][i]);
      }
    };
  }

  private static Doubles binary(DoubleBinaryOperator f) {
    return (in, out, n) -> {
      for (int i = 0; i < n; i++) {
        out[i] = f.applyAsDouble(in[0][i], in[1][i]);
      }
    };
  }

  private static Longs binaryLongs(LongBinaryOperator f) {
    return (in, out, n) -> {
      for (int i = 0; i < n; i++) {
        out[i] = f.applyAsLong(in[0][i], in[1][i]);
      }
    };
  }

  /** Computes in doubles if an operand or the result is a float, else in longs. */
  private static void run(HostCall call, Doubles doubles, Longs longs, String... operands) {
    boolean floats = call.result().dtype().isFloat();
    for (var operand : operands) {
      floats |=
          switch (call.value(operand)) {
            case Value.Tensor(HostTensor tensor) -> tensor.dtype().isFloat();
            case Value.Constant(Arg arg) -> arg instanceof Arg.Float;
            case Value.Many _ -> false;
          };
    }
    if (floats) {
      runDoubles(call, doubles, operands);
    } else {
      runLongs(call, longs, operands);
    }
  }

  private static void runDoubles(HostCall call, Doubles function, String... operands) {
    boolean wide = isWide(call, operands);
    var in = new double[operands.length][Loops.CHUNK];
    var tensors = new ArrayList<HostTensor>();
    var slots = new int[operands.length];
    for (int i = 0; i < operands.length; i++) {
      slots[i] = -1;
      if (call.value(operands[i]) instanceof Value.Tensor(HostTensor tensor)) {
        slots[i] = tensors.size();
        tensors.add(tensor);
      } else {
        double number = call.number(operands[i]);
        // A Python number takes part in the precision of the tensors.
        Arrays.fill(in[i], wide ? number : (float) number);
      }
    }
    var result = call.result();
    var out = new double[Loops.CHUNK];
    forEach(
        tensors,
        result,
        (offsets, steps, count) -> {
          for (int i = 0; i < slots.length; i++) {
            if (slots[i] >= 0) {
              var tensor = tensors.get(slots[i]);
              Elements.load(
                  tensor.memory(),
                  offsets[slots[i]],
                  steps[slots[i]],
                  tensor.dtype(),
                  in[i],
                  count);
            }
          }
          function.run(in, out, count);
          int last = tensors.size();
          Elements.store(out, count, result.memory(), offsets[last], steps[last], result.dtype());
        });
  }

  private static boolean isWide(HostCall call, String... operands) {
    boolean wide = call.result().dtype() == DType.F64;
    for (var operand : operands) {
      wide |=
          call.value(operand) instanceof Value.Tensor(HostTensor tensor)
              && tensor.dtype() == DType.F64;
    }
    return wide;
  }

  private static void runLongs(HostCall call, Longs function, String... operands) {
    var in = new long[operands.length][Loops.CHUNK];
    var tensors = new ArrayList<HostTensor>();
    var slots = new int[operands.length];
    for (int i = 0; i < operands.length; i++) {
      slots[i] = -1;
      if (call.value(operands[i]) instanceof Value.Tensor(HostTensor tensor)) {
        slots[i] = tensors.size();
        tensors.add(tensor);
      } else {
        Arrays.fill(in[i], call.integer(operands[i]));
      }
    }
    var result = call.result();
    var out = new long[Loops.CHUNK];
    forEach(
        tensors,
        result,
        (offsets, steps, count) -> {
          for (int i = 0; i < slots.length; i++) {
            if (slots[i] >= 0) {
              var tensor = tensors.get(slots[i]);
              Elements.load(
                  tensor.memory(),
                  offsets[slots[i]],
                  steps[slots[i]],
                  tensor.dtype(),
                  in[i],
                  count);
            }
          }
          function.run(in, out, count);
          int last = tensors.size();
          Elements.store(out, count, result.memory(), offsets[last], steps[last], result.dtype());
        });
  }

  /** The operands, broadcast to the result, and the result behind them. */
  private static void forEach(List<HostTensor> operands, HostTensor result, Loops.Row row) {
    var sizes = result.type().sizes().toArray();
    var strides = new ArrayList<long[]>();
    for (var operand : operands) {
      strides.add(Loops.byteStrides(operand.type(), sizes));
    }
    strides.add(Loops.byteStrides(result.type(), sizes));
    Loops.forEach(sizes, strides, row);
  }
}
