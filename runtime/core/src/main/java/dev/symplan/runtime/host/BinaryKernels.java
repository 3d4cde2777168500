package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.runtime.tensor.Elements;
import java.util.List;
import java.util.function.DoubleBinaryOperator;
import java.util.function.LongBinaryOperator;

/** Elementwise ops with two operands: a table of scalar functions. */
final class BinaryKernels {
  private static final List<String> TENSOR_OR_SCALAR = List.of(".Tensor", ".Scalar");

  private final ImmutableMap.Builder<String, HostKernel> table = ImmutableMap.builder();

  private BinaryKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var kernels = new BinaryKernels();
    kernels.sums();
    kernels.quotients();
    kernels.powers();
    kernels.bits();
    kernels.comparisons();
    kernels.extremes();
    kernels.others();
    return kernels.table.buildOrThrow();
  }

  private void sums() {
    pair("mul", (a, b) -> a * b, (a, b) -> a * b);
    scaled("add", (a, b, alpha) -> a + alpha * b, (a, b, alpha) -> a + alpha * b);
    scaled("sub", (a, b, alpha) -> a - alpha * b, (a, b, alpha) -> a - alpha * b);
    scaled("rsub", (a, b, alpha) -> b - alpha * a, (a, b, alpha) -> b - alpha * a);
  }

  private interface ScaledLongs {
    long apply(long a, long b, long alpha);
  }

  private void scaled(String name, Pointwise.Ternary doubles, ScaledLongs longs) {
    for (var overload : TENSOR_OR_SCALAR) {
      table.put(
          "aten::" + name + overload,
          call -> {
            double alpha = call.number("alpha");
            long whole = (long) alpha;
            Pointwise.run(
                call,
                Pointwise.binary((a, b) -> doubles.apply(a, b, alpha)),
                Pointwise.binaryLongs((a, b) -> longs.apply(a, b, whole)),
                "self",
                "other");
          });
    }
  }

  private void quotients() {
    for (var overload : TENSOR_OR_SCALAR) {
      table.put("aten::div" + overload, BinaryKernels::divide);
      table.put(
          "aten::div" + overload + "_mode",
          call -> {
            if (!call.has("rounding_mode")) {
              divide(call);
            } else if (call.string("rounding_mode").equals("floor")) {
              floorDivide(call);
            } else {
              truncatedDivide(call);
            }
          });
    }
    table.put("aten::floor_divide", BinaryKernels::floorDivide);
    table.put("aten::floor_divide.Scalar", BinaryKernels::floorDivide);
    pair("remainder", SpecialFunctions::remainder, whole(Math::floorMod));
    named("remainder.Scalar_Tensor", SpecialFunctions::remainder, whole(Math::floorMod));
    pair("fmod", (a, b) -> a % b, whole((a, b) -> a % b));
  }

  private static void divide(HostCall call) {
    Pointwise.runDoubles(call, Pointwise.binary((a, b) -> a / b), "self", "other");
  }

  private static void floorDivide(HostCall call) {
    Pointwise.run(
        call,
        Pointwise.binary(SpecialFunctions::floorDivide),
        Pointwise.binaryLongs(whole(Math::floorDiv)),
        "self",
        "other");
  }

  /** The quotient is rounded to f32 before it is cut off, where that is what is computed in. */
  private static void truncatedDivide(HostCall call) {
    boolean wide = call.result().dtype() == DType.F64;
    Pointwise.run(
        call,
        Pointwise.binary((a, b) -> SpecialFunctions.trunc(wide ? a / b : (float) (a / b))),
        Pointwise.binaryLongs(whole((a, b) -> a / b)),
        "self",
        "other");
  }

  private static LongBinaryOperator whole(LongBinaryOperator f) {
    return (a, b) -> {
      if (b == 0) {
        throw new HostKernelException("integer division of " + a + " by zero");
      }
      return f.applyAsLong(a, b);
    };
  }

  private void powers() {
    for (var overload : List.of("Tensor_Scalar", "Tensor_Tensor", "Scalar")) {
      table.put(
          "aten::pow." + overload,
          call ->
              Pointwise.run(
                  call,
                  Pointwise.binary(SpecialFunctions::pow),
                  Pointwise.binaryLongs(SpecialFunctions::pow),
                  "self",
                  "exponent"));
      table.put(
          "aten::float_power." + overload,
          call ->
              Pointwise.runDoubles(
                  call, Pointwise.binary(SpecialFunctions::pow), "self", "exponent"));
    }
  }

  private void bits() {
    for (var name : List.of("bitwise_and", "__and__")) {
      integers(name, (a, b) -> a & b);
    }
    for (var name : List.of("bitwise_or", "__or__")) {
      integers(name, (a, b) -> a | b);
    }
    for (var name : List.of("bitwise_xor", "__xor__")) {
      integers(name, (a, b) -> a ^ b);
    }
    for (var overload : List.of(".Tensor", ".Tensor_Scalar", ".Scalar_Tensor")) {
      table.put("aten::bitwise_left_shift" + overload, call -> shift(call, true));
      table.put("aten::bitwise_right_shift" + overload, call -> shift(call, false));
    }
    for (var name : List.of("bitwise_and", "bitwise_or", "bitwise_xor")) {
      LongBinaryOperator f =
          switch (name) {
            case "bitwise_and" -> (a, b) -> a & b;
            case "bitwise_or" -> (a, b) -> a | b;
            default -> (a, b) -> a ^ b;
          };
      table.put(
          "aten::" + name + ".Scalar_Tensor",
          call -> Pointwise.runLongs(call, Pointwise.binaryLongs(f), "self", "other"));
    }
  }

  private void integers(String name, LongBinaryOperator longs) {
    for (var overload : TENSOR_OR_SCALAR) {
      table.put(
          "aten::" + name + overload,
          call -> Pointwise.runLongs(call, Pointwise.binaryLongs(longs), "self", "other"));
    }
  }

  /** Shifts by more than there are bits leave nothing but the sign. */
  private static void shift(HostCall call, boolean left) {
    int bits = call.result().dtype().bytes() * Byte.SIZE;
    LongBinaryOperator f =
        left
            ? (a, b) -> b < 0 || b >= bits ? 0 : a << b
            : (a, b) -> a >> (b < 0 || b >= bits ? Long.SIZE - 1 : b);
    Pointwise.runLongs(call, Pointwise.binaryLongs(f), "self", "other");
  }

  private void comparisons() {
    pair("eq", (a, b) -> a == b ? 1 : 0, (a, b) -> a == b ? 1 : 0);
    pair("ne", (a, b) -> a != b ? 1 : 0, (a, b) -> a != b ? 1 : 0);
    pair("lt", (a, b) -> a < b ? 1 : 0, (a, b) -> a < b ? 1 : 0);
    pair("le", (a, b) -> a <= b ? 1 : 0, (a, b) -> a <= b ? 1 : 0);
    pair("gt", (a, b) -> a > b ? 1 : 0, (a, b) -> a > b ? 1 : 0);
    pair("ge", (a, b) -> a >= b ? 1 : 0, (a, b) -> a >= b ? 1 : 0);
    named("logical_and", (a, b) -> a != 0 && b != 0 ? 1 : 0, (a, b) -> a != 0 && b != 0 ? 1 : 0);
    named("logical_or", (a, b) -> a != 0 || b != 0 ? 1 : 0, (a, b) -> a != 0 || b != 0 ? 1 : 0);
    named(
        "logical_xor",
        (a, b) -> (a != 0) != (b != 0) ? 1 : 0,
        (a, b) -> (a != 0) != (b != 0) ? 1 : 0);
  }

  private void extremes() {
    for (var name : List.of("maximum", "max.other")) {
      named(name, SpecialFunctions::maximum, Math::max);
    }
    for (var name : List.of("minimum", "min.other")) {
      named(name, SpecialFunctions::minimum, Math::min);
    }
    named("fmax", (a, b) -> Double.isNaN(a) ? b : Double.isNaN(b) ? a : Math.max(a, b), Math::max);
    named("fmin", (a, b) -> Double.isNaN(a) ? b : Double.isNaN(b) ? a : Math.min(a, b), Math::min);
  }

  private void others() {
    floats("atan2", Math::atan2);
    floats("hypot", Math::hypot);
    floats("logaddexp", SpecialFunctions::logAddExp);
    floats("logaddexp2", SpecialFunctions::logAddExp2);
    for (var overload : List.of("Tensor", "Scalar_Self", "Scalar_Other")) {
      floats("xlogy." + overload, SpecialFunctions::xlogy);
    }
    for (var overload : TENSOR_OR_SCALAR) {
      floats("copysign" + overload, Math::copySign);
    }
    table.put(
        "aten::nextafter",
        call -> {
          var dtype = call.result().dtype();
          Pointwise.runDoubles(
              call, Pointwise.binary((a, b) -> nextAfter(a, b, dtype)), "self", "other");
        });
    for (var name : List.of("gcd", "lcm")) {
      LongBinaryOperator f = name.equals("gcd") ? SpecialFunctions::gcd : SpecialFunctions::lcm;
      table.put(
          "aten::" + name,
          call -> Pointwise.runLongs(call, Pointwise.binaryLongs(f), "self", "other"));
    }
    table.put(
        "aten::heaviside",
        call ->
            Pointwise.run(
                call,
                Pointwise.binary((x, at0) -> x == 0 ? at0 : x > 0 ? 1 : 0),
                Pointwise.binaryLongs((x, at0) -> x == 0 ? at0 : x > 0 ? 1 : 0),
                "self",
                "values"));
  }

  private static double nextAfter(double a, double b, DType dtype) {
    if (dtype == DType.F64 || Double.isNaN(a) || Double.isNaN(b)) {
      return Math.nextAfter(a, b);
    }
    if (dtype == DType.F32) {
      return Math.nextAfter((float) a, b);
    }
    if (a == b) {
      return b;
    }
    boolean brain = dtype == DType.BF16;
    if (a == 0) {
      float least = brain ? Elements.fromBFloat16((short) 1) : Float.float16ToFloat((short) 1);
      return Math.copySign(least, b);
    }
    short bits = brain ? Elements.toBFloat16((float) a) : Float.floatToFloat16((float) a);
    // Floats of one sign are ordered as their bits are.
    short next = (short) (bits + ((a < b) == (a > 0) ? 1 : -1));
    return brain ? Elements.fromBFloat16(next) : Float.float16ToFloat(next);
  }

  /** Overloads with a tensor and a number. */
  private void pair(String name, DoubleBinaryOperator doubles, LongBinaryOperator longs) {
    for (var overload : TENSOR_OR_SCALAR) {
      named(name + overload, doubles, longs);
    }
  }

  private void named(String name, DoubleBinaryOperator doubles, LongBinaryOperator longs) {
    table.put(
        "aten::" + name,
        call ->
            Pointwise.run(
                call, Pointwise.binary(doubles), Pointwise.binaryLongs(longs), "self", "other"));
  }

  private void floats(String name, DoubleBinaryOperator doubles) {
    table.put(
        "aten::" + name,
        call -> Pointwise.runDoubles(call, Pointwise.binary(doubles), "self", "other"));
  }
}
