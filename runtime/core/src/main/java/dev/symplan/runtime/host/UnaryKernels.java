package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import java.util.function.DoubleUnaryOperator;
import java.util.function.LongUnaryOperator;
import org.apache.commons.numbers.gamma.Erf;
import org.apache.commons.numbers.gamma.Erfc;
import org.apache.commons.numbers.gamma.Erfcx;
import org.apache.commons.numbers.gamma.InverseErf;

/** Elementwise ops with one operand: a table of scalar functions. */
final class UnaryKernels {
  private final ImmutableMap.Builder<String, HostKernel> table = ImmutableMap.builder();

  private UnaryKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var kernels = new UnaryKernels();
    kernels.arithmetic();
    kernels.exponential();
    kernels.trigonometric();
    kernels.tests();
    return kernels.table.buildOrThrow();
  }

  private void arithmetic() {
    both("neg", x -> -x, x -> -x);
    both("abs", Math::abs, Math::abs);
    both("relu", x -> x < 0 ? 0 : x, x -> Math.max(x, 0));
    both("relu6", x -> x < 0 ? 0 : x > 6 ? 6 : x, x -> Math.clamp(x, 0, 6));
    both("sign", SpecialFunctions::sign, Long::signum);
    both("sgn", SpecialFunctions::sign, Long::signum);
    both("square", x -> x * x, x -> x * x);
    both("floor", Math::floor, x -> x);
    both("ceil", Math::ceil, x -> x);
    both("round", Math::rint, x -> x);
    both("trunc", SpecialFunctions::trunc, x -> x);
    both("positive", x -> x, x -> x);
    floats("frac", x -> x - SpecialFunctions.trunc(x));
    floats("reciprocal", x -> 1 / x);
    floats("sqrt", Math::sqrt);
    floats("rsqrt", x -> 1 / Math.sqrt(x));
    floats("deg2rad", Math::toRadians);
    floats("rad2deg", Math::toDegrees);
    table.put(
        "aten::bitwise_not",
        call -> {
          boolean bool = call.tensor("self").dtype() == DType.BOOL;
          Pointwise.runLongs(call, Pointwise.unaryLongs(bool ? x -> 1 - x : x -> ~x), "self");
        });
  }

  private void exponential() {
    floats("exp", Math::exp);
    floats("exp2", x -> Math.pow(2, x));
    floats("expm1", Math::expm1);
    floats("log", Math::log);
    floats("log2", x -> Math.log(x) / Math.log(2));
    floats("log10", Math::log10);
    floats("log1p", Math::log1p);
    floats("sigmoid", SpecialFunctions::sigmoid);
    floats("log_sigmoid", SpecialFunctions::logSigmoid);
    floats("erf", Erf::value);
    floats("erfc", Erfc::value);
    floats("erfinv", InverseErf::value);
    floats("lgamma", SpecialFunctions::lgamma);
    floats("digamma", SpecialFunctions::digamma);
    floats("i0", SpecialFunctions::besselI0);
    floats("special_erfcx", Erfcx::value);
    floats("special_ndtri", SpecialFunctions::ndtri);
    floats("special_log_ndtr", SpecialFunctions::logNdtr);
  }

  private void trigonometric() {
    floats("sin", Math::sin);
    floats("cos", Math::cos);
    floats("tan", Math::tan);
    floats("asin", Math::asin);
    floats("acos", Math::acos);
    floats("atan", Math::atan);
    floats("sinh", Math::sinh);
    floats("cosh", Math::cosh);
    floats("tanh", Math::tanh);
    floats("asinh", SpecialFunctions::asinh);
    floats("acosh", SpecialFunctions::acosh);
    floats("atanh", SpecialFunctions::atanh);
    floats("sinc", SpecialFunctions::sinc);
  }

  private void tests() {
    both("isnan", x -> Double.isNaN(x) ? 1 : 0, x -> 0);
    both("isinf", x -> Double.isInfinite(x) ? 1 : 0, x -> 0);
    both("isposinf", x -> x == Double.POSITIVE_INFINITY ? 1 : 0, x -> 0);
    both("isneginf", x -> x == Double.NEGATIVE_INFINITY ? 1 : 0, x -> 0);
    both("isfinite", x -> Double.isFinite(x) ? 1 : 0, x -> 1);
    both("signbit", x -> Double.doubleToRawLongBits(x) < 0 ? 1 : 0, x -> x < 0 ? 1 : 0);
    both("logical_not", x -> x == 0 ? 1 : 0, x -> x == 0 ? 1 : 0);
  }

  private void both(String name, DoubleUnaryOperator doubles, LongUnaryOperator longs) {
    table.put(
        "aten::" + name,
        call -> Pointwise.run(call, Pointwise.unary(doubles), Pointwise.unaryLongs(longs), "self"));
  }

  private void floats(String name, DoubleUnaryOperator doubles) {
    table.put(
        "aten::" + name, call -> Pointwise.runDoubles(call, Pointwise.unary(doubles), "self"));
  }
}
