package dev.symplan.codegen.expr;

import dev.symplan.codegen.expr.Primitive.Comparison;
import dev.symplan.codegen.expr.Primitive.FloatFunction;
import dev.symplan.codegen.expr.Primitive.Fold;
import dev.symplan.codegen.expr.Primitive.Known;
import dev.symplan.codegen.expr.Primitive.Operator;
import dev.symplan.codegen.expr.Primitive.Scan;
import dev.symplan.ir.DType;
import java.util.Arrays;
import java.util.function.DoubleBinaryOperator;
import java.util.function.DoubleUnaryOperator;
import org.apache.commons.numbers.gamma.Erf;
import org.apache.commons.numbers.gamma.Erfc;
import org.apache.commons.numbers.gamma.Erfcx;
import org.apache.commons.numbers.gamma.InverseErf;

/**
 * Primitives of floats, in f64.
 *
 * @param type the type in which it is computed, where that makes a difference
 */
record FloatBlocks(DType type) implements Blocks<double[]> {

  @Override
  public double[] allocate(int size) {
    return new double[size];
  }

  @Override
  public void fill(double[] values, Expr number) {
    Arrays.fill(values, number(number));
  }

  private static double number(Expr expr) {
    return switch (expr) {
      case Expr.Int(long value) -> value;
      case Expr.Float(double value) -> value;
      case Expr.Param _, Expr.Text _, Expr.Apply _ ->
          throw new IllegalArgumentException(expr + " is not a number");
    };
  }

  @Override
  public void spread(double[] from, int at, double[] to, int first, int n) {
    Arrays.fill(to, first, first + n, from[at]);
  }

  @Override
  public void apply(Primitive primitive, double[] a, double[] b, double[] c, double[] out, int n) {
    switch (primitive) {
      case Operator operator -> operate(operator, a, b, out, n);
      case Comparison comparison -> compare(comparison, a, b, out, n);
      case Primitive.Function function -> apply(function, a, b, c, out, n);
      case FloatFunction function -> apply(function, a, b, out, n);
      case Fold _, Scan _, Known _ -> throw notOfFloats(primitive);
    }
  }

  private static IllegalArgumentException notOfFloats(Primitive primitive) {
    return new IllegalArgumentException(primitive.symbol() + " is not of single floats");
  }

  private static void operate(Operator operator, double[] a, double[] b, double[] out, int n) {
    switch (operator) {
      case OR -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] != 0 || b[i] != 0 ? 1 : 0;
        }
      }
      case AND -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] != 0 && b[i] != 0 ? 1 : 0;
        }
      }
      case ADD -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] + b[i];
        }
      }
      case SUB -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] - b[i];
        }
      }
      case MUL -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] * b[i];
        }
      }
      case DIV -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] / b[i];
        }
      }
      case BIT_OR, BIT_XOR, BIT_AND, SHIFT_LEFT, SHIFT_RIGHT -> throw notOfFloats(operator);
    }
  }

  private static void compare(Comparison comparison, double[] a, double[] b, double[] out, int n) {
    switch (comparison) {
      case EQ -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] == b[i] ? 1 : 0;
        }
      }
      case NE -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] != b[i] ? 1 : 0;
        }
      }
      case LT -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] < b[i] ? 1 : 0;
        }
      }
      case LE -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] <= b[i] ? 1 : 0;
        }
      }
      case GT -> compare(Comparison.LT, b, a, out, n);
      case GE -> compare(Comparison.LE, b, a, out, n);
    }
  }

  private void apply(
      Primitive.Function function, double[] a, double[] b, double[] c, double[] out, int n) {
    switch (function) {
      case SELECT -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] != 0 ? b[i] : c[i];
        }
      }
      case NEG -> {
        for (int i = 0; i < n; i++) {
          out[i] = -a[i];
        }
      }
      case NOT -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] == 0 ? 1 : 0;
        }
      }
      case ABS -> {
        for (int i = 0; i < n; i++) {
          out[i] = Math.abs(a[i]);
        }
      }
      case FLOOR -> map(Math::floor, a, out, n);
      case CEIL -> map(Math::ceil, a, out, n);
      case TRUNC -> map(x -> x < 0 ? Math.ceil(x) : Math.floor(x), a, out, n);
      case RINT -> map(Math::rint, a, out, n);
      case ISNAN -> {
        for (int i = 0; i < n; i++) {
          out[i] = Double.isNaN(a[i]) ? 1 : 0;
        }
      }
      case ISINF -> map(x -> Double.isInfinite(x) ? 1 : 0, a, out, n);
      case ISFINITE -> map(x -> Double.isFinite(x) ? 1 : 0, a, out, n);
      case SIGNBIT -> map(x -> Double.doubleToRawLongBits(x) < 0 ? 1 : 0, a, out, n);
      case SINGLE -> map(x -> type == DType.F64 ? x : (float) x, a, out, n);
      case POW -> map(SpecialFunctions::pow, a, b, out, n);
      case FMOD -> map((x, y) -> x % y, a, b, out, n);
      case FMIN ->
          map((x, y) -> Double.isNaN(x) ? y : Double.isNaN(y) ? x : Math.min(x, y), a, b, out, n);
      case FMAX ->
          map((x, y) -> Double.isNaN(x) ? y : Double.isNaN(y) ? x : Math.max(x, y), a, b, out, n);
      case MINIMUM -> {
        for (int i = 0; i < n; i++) {
          out[i] = Math.min(a[i], b[i]);
        }
      }
      case MAXIMUM -> {
        for (int i = 0; i < n; i++) {
          out[i] = Math.max(a[i], b[i]);
        }
      }
      case FLOOR_DIV -> {
        for (int i = 0; i < n; i++) {
          out[i] = SpecialFunctions.floorDiv(a[i], b[i]);
        }
      }
      case TARGET_CLASS -> map((x, y) -> Blocks.targetClass((long) x, (long) y), a, b, out, n);
      case BIT_NOT, FLOOR_MOD, GCD, LCM -> throw notOfFloats(function);
    }
  }

  private void apply(FloatFunction function, double[] a, double[] b, double[] out, int n) {
    switch (function) {
      case SQRT -> {
        for (int i = 0; i < n; i++) {
          out[i] = Math.sqrt(a[i]);
        }
      }
      case EXP -> {
        for (int i = 0; i < n; i++) {
          out[i] = Math.exp(a[i]);
        }
      }
      case EXP2 -> map(x -> Math.pow(2, x), a, out, n);
      case EXPM1 -> map(Math::expm1, a, out, n);
      case LOG -> map(Math::log, a, out, n);
      case LOG2 -> map(x -> Math.log(x) / Math.log(2), a, out, n);
      case LOG10 -> map(Math::log10, a, out, n);
      case LOG1P -> map(Math::log1p, a, out, n);
      case SIN -> map(Math::sin, a, out, n);
      case COS -> map(Math::cos, a, out, n);
      case TAN -> map(Math::tan, a, out, n);
      case ASIN -> map(Math::asin, a, out, n);
      case ACOS -> map(Math::acos, a, out, n);
      case ATAN -> map(Math::atan, a, out, n);
      case SINH -> map(Math::sinh, a, out, n);
      case COSH -> map(Math::cosh, a, out, n);
      case TANH -> {
        for (int i = 0; i < n; i++) {
          out[i] = Math.tanh(a[i]);
        }
      }
      case ASINH -> map(SpecialFunctions::asinh, a, out, n);
      case ACOSH -> map(SpecialFunctions::acosh, a, out, n);
      case ATANH -> map(SpecialFunctions::atanh, a, out, n);
      case ERF -> map(Erf::value, a, out, n);
      case ERFC -> map(Erfc::value, a, out, n);
      case ERFCX -> map(Erfcx::value, a, out, n);
      case ERFINV -> map(InverseErf::value, a, out, n);
      case LGAMMA -> map(SpecialFunctions::lgamma, a, out, n);
      case DIGAMMA -> map(SpecialFunctions::digamma, a, out, n);
      case BESSEL_I0 -> map(SpecialFunctions::besselI0, a, out, n);
      case NDTRI -> map(SpecialFunctions::ndtri, a, out, n);
      case ATAN2 -> map(Math::atan2, a, b, out, n);
      case HYPOT -> map(Math::hypot, a, b, out, n);
      case COPYSIGN -> map(Math::copySign, a, b, out, n);
      case NEXTAFTER -> map((x, y) -> Rounding.nextAfter(x, y, type), a, b, out, n);
      case FLOAT -> System.arraycopy(a, 0, out, 0, n);
    }
  }

  private static void map(DoubleUnaryOperator f, double[] a, double[] out, int n) {
    for (int i = 0; i < n; i++) {
      out[i] = f.applyAsDouble(a[i]);
    }
  }

  private static void map(DoubleBinaryOperator f, double[] a, double[] b, double[] out, int n) {
    for (int i = 0; i < n; i++) {
      out[i] = f.applyAsDouble(a[i], b[i]);
    }
  }

  @Override
  public void select(
      Comparison compare, double[] a, double[] b, double[] x, double[] y, double[] out, int n) {
    switch (compare) {
      case EQ -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] == b[i] ? x[i] : y[i];
        }
      }
      case NE -> select(Comparison.EQ, a, b, y, x, out, n);
      case GT -> select(Comparison.LT, b, a, x, y, out, n);
      case GE -> select(Comparison.LE, b, a, x, y, out, n);
      case LT -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] < b[i] ? x[i] : y[i];
        }
      }
      case LE -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] <= b[i] ? x[i] : y[i];
        }
      }
    }
  }

  @Override
  public void start(Fold fold, double[] kept, int at) {
    kept[at] = fold.start();
  }

  @Override
  public void fold(
      Fold fold, double[] in, int from, int n, double[] kept, int at, int other, long position) {
    double value = kept[at];
    switch (fold) {
      case SUM -> {
        for (int i = from; i < from + n; i++) {
          value += in[i];
        }
      }
      case PROD -> {
        for (int i = from; i < from + n; i++) {
          value *= in[i];
        }
      }
      case AMAX -> {
        for (int i = from; i < from + n; i++) {
          value = Math.max(value, in[i]);
        }
      }
      case AMIN -> {
        for (int i = from; i < from + n; i++) {
          value = Math.min(value, in[i]);
        }
      }
      case ANY -> {
        for (int i = from; i < from + n; i++) {
          value = value != 0 || in[i] != 0 ? 1 : 0;
        }
      }
      case ALL -> {
        for (int i = from; i < from + n; i++) {
          value = value != 0 && in[i] != 0 ? 1 : 0;
        }
      }
      case FIRST_MAX -> {
        for (int i = from; i < from + n; i++) {
          value = position + i - from == 0 || isBetter(in[i], value) ? in[i] : value;
        }
      }
      case FIRST_MIN -> {
        for (int i = from; i < from + n; i++) {
          value = position + i - from == 0 || isBetter(-in[i], -value) ? in[i] : value;
        }
      }
      case ARGMAX, ARGMIN -> {
        int sign = fold == Fold.ARGMAX ? 1 : -1;
        double best = kept[other];
        for (int i = from; i < from + n; i++) {
          if (value < 0 || isBetter(sign * in[i], best)) {
            value = position + i - from;
            best = sign * in[i];
          }
        }
        kept[other] = best;
      }
    }
    kept[at] = value;
  }

  /** A NaN is larger than all. */
  private static boolean isBetter(double x, double best) {
    return x > best || (Double.isNaN(x) && !Double.isNaN(best));
  }

  @Override
  public void scan(Scan scan, double[] in, int from, int n, double[] out, int at) {
    double value = out[at];
    boolean adds = scan == Scan.CUMSUM;
    for (int i = from; i < from + n; i++) {
      value = adds ? value + in[i] : value * in[i];
      out[i] = value;
    }
    out[at] = value;
  }
}
