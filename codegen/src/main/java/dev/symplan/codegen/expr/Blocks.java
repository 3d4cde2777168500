package dev.symplan.codegen.expr;

import dev.symplan.ir.DType;
import java.util.function.DoubleBinaryOperator;
import java.util.function.DoubleUnaryOperator;
import java.util.function.LongBinaryOperator;
import org.apache.commons.numbers.gamma.Erf;
import org.apache.commons.numbers.gamma.Erfc;
import org.apache.commons.numbers.gamma.Erfcx;
import org.apache.commons.numbers.gamma.InverseErf;

/**
 * Primitives of many elements at once, in f64 or in 64-bit integers.
 *
 * <p>The loops of what takes no time by itself are inside the switch, so that each has one
 * operation.
 */
public final class Blocks {
  private Blocks() {}

  /** {@return the value of a primitive of numbers, as it is computed in a type} */
  static Expr fold(Expr.Apply apply, DType type) {
    int arity = apply.args().size();
    if (!type.isFloat()) {
      var in = new long[3][1];
      for (int i = 0; i < arity; i++) {
        in[i][0] = whole(apply.args().get(i));
      }
      longs(apply.primitive(), in[0], in[1], in[2], in[0], 1);
      return new Expr.Int(in[0][0]);
    }
    var in = new double[3][1];
    for (int i = 0; i < arity; i++) {
      in[i][0] = number(apply.args().get(i));
    }
    doubles(apply.primitive(), type, in[0], in[1], in[2], in[0], 1);
    return new Expr.Float(in[0][0]);
  }

  /** {@return the value of an expression that is a number} */
  public static double number(Expr expr) {
    return switch (expr) {
      case Expr.Int(long value) -> value;
      case Expr.Float(double value) -> value;
      case Expr.Param _, Expr.Text _, Expr.Apply _ ->
          throw new IllegalArgumentException(expr + " is not a number");
    };
  }

  /** {@return the value of an expression that is an integer} */
  public static long whole(Expr expr) {
    return expr instanceof Expr.Int(long value) ? value : (long) number(expr);
  }

  /**
   * Computes {@code out[i]} of {@code a[i]}, {@code b[i]} and {@code c[i]}, as many of them as the
   * primitive takes, for {@code n} elements.
   *
   * @param type what is computed in, where that makes a difference
   * @throws IllegalArgumentException when it is not of floats, or not of single elements
   * @throws IndexOutOfBoundsException when a target is no class
   */
  public static void doubles(
      Primitive primitive, DType type, double[] a, double[] b, double[] c, double[] out, int n) {
    switch (primitive) {
      case SELECT -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] != 0 ? b[i] : c[i];
        }
      }
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
      case GT -> doubles(Primitive.LT, type, b, a, c, out, n);
      case GE -> doubles(Primitive.LE, type, b, a, c, out, n);
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
      case SQRT -> {
        for (int i = 0; i < n; i++) {
          out[i] = Math.sqrt(a[i]);
        }
      }
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
      case EXP -> {
        for (int i = 0; i < n; i++) {
          out[i] = Math.exp(a[i]);
        }
      }
      case TANH -> {
        for (int i = 0; i < n; i++) {
          out[i] = Math.tanh(a[i]);
        }
      }
      case SINGLE -> map(x -> type == DType.F64 ? x : (float) x, a, out, n);
      case FLOOR -> map(Math::floor, a, out, n);
      case CEIL -> map(Math::ceil, a, out, n);
      case TRUNC -> map(x -> x < 0 ? Math.ceil(x) : Math.floor(x), a, out, n);
      case RINT -> map(Math::rint, a, out, n);
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
      case ISNAN -> {
        for (int i = 0; i < n; i++) {
          out[i] = Double.isNaN(a[i]) ? 1 : 0;
        }
      }
      case ISINF -> map(x -> Double.isInfinite(x) ? 1 : 0, a, out, n);
      case ISFINITE -> map(x -> Double.isFinite(x) ? 1 : 0, a, out, n);
      case SIGNBIT -> map(x -> Double.doubleToRawLongBits(x) < 0 ? 1 : 0, a, out, n);
      case POW -> map(SpecialFunctions::pow, a, b, out, n);
      case ATAN2 -> map(Math::atan2, a, b, out, n);
      case HYPOT -> map(Math::hypot, a, b, out, n);
      case COPYSIGN -> map(Math::copySign, a, b, out, n);
      case NEXTAFTER -> map((x, y) -> Rounding.nextAfter(x, y, type), a, b, out, n);
      case FMOD -> map((x, y) -> x % y, a, b, out, n);
      case FMIN ->
          map((x, y) -> Double.isNaN(x) ? y : Double.isNaN(y) ? x : Math.min(x, y), a, b, out, n);
      case FMAX ->
          map((x, y) -> Double.isNaN(x) ? y : Double.isNaN(y) ? x : Math.max(x, y), a, b, out, n);
      case TARGET_CLASS -> map((x, y) -> targetClass((long) x, (long) y), a, b, out, n);
      default ->
          throw new IllegalArgumentException(primitive.symbol() + " is not of single floats");
    }
  }

  /** {@return whether {@link #select} can decide by a primitive} */
  public static boolean compares(Primitive primitive) {
    return switch (primitive) {
      case EQ, NE, LT, LE, GT, GE -> true;
      default -> false;
    };
  }

  /** Chooses {@code x[i]} where {@code a[i]} compares so with {@code b[i]}, else {@code y[i]}. */
  public static void select(
      Primitive compare, double[] a, double[] b, double[] x, double[] y, double[] out, int n) {
    switch (compare) {
      case EQ -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] == b[i] ? x[i] : y[i];
        }
      }
      case NE -> select(Primitive.EQ, a, b, y, x, out, n);
      case GT -> select(Primitive.LT, b, a, x, y, out, n);
      case GE -> select(Primitive.LE, b, a, x, y, out, n);
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
      default -> throw new IllegalArgumentException(compare.symbol() + " does not compare");
    }
  }

  /** As the one of floats. */
  public static void select(
      Primitive compare, long[] a, long[] b, long[] x, long[] y, long[] out, int n) {
    longs(compare, a, b, b, out, n);
    longs(Primitive.SELECT, out, x, y, out, n);
  }

  /**
   * Takes elements into a fold, which keeps {@code kept[0]}, and {@code kept[1]} where it looks for
   * an index.
   *
   * @param first the position of the first element
   */
  public static void fold(Primitive primitive, double[] in, double[] kept, int n, long first) {
    double value = kept[0];
    switch (primitive) {
      case SUM -> {
        for (int i = 0; i < n; i++) {
          value += in[i];
        }
      }
      case PROD -> {
        for (int i = 0; i < n; i++) {
          value *= in[i];
        }
      }
      case AMAX -> {
        for (int i = 0; i < n; i++) {
          value = Math.max(value, in[i]);
        }
      }
      case AMIN -> {
        for (int i = 0; i < n; i++) {
          value = Math.min(value, in[i]);
        }
      }
      case ANY -> {
        for (int i = 0; i < n; i++) {
          value = value != 0 || in[i] != 0 ? 1 : 0;
        }
      }
      case ALL -> {
        for (int i = 0; i < n; i++) {
          value = value != 0 && in[i] != 0 ? 1 : 0;
        }
      }
      case FIRST_MAX -> {
        for (int i = 0; i < n; i++) {
          value = first + i == 0 || isBetter(in[i], value) ? in[i] : value;
        }
      }
      case FIRST_MIN -> {
        for (int i = 0; i < n; i++) {
          value = first + i == 0 || isBetter(-in[i], -value) ? in[i] : value;
        }
      }
      case ARGMAX, ARGMIN -> {
        int sign = primitive == Primitive.ARGMAX ? 1 : -1;
        double best = kept[1];
        for (int i = 0; i < n; i++) {
          if (value < 0 || isBetter(sign * in[i], best)) {
            value = first + i;
            best = sign * in[i];
          }
        }
        kept[1] = best;
      }
      default -> throw new IllegalArgumentException(primitive.symbol() + " is not a fold");
    }
    kept[0] = value;
  }

  /** A NaN is larger than all. */
  private static boolean isBetter(double x, double best) {
    return x > best || (Double.isNaN(x) && !Double.isNaN(best));
  }

  /** As the one of floats. */
  public static void fold(Primitive primitive, long[] in, long[] kept, int n, long first) {
    long value = kept[0];
    for (int i = 0; i < n; i++) {
      long x = in[i];
      switch (primitive) {
        case SUM -> value += x;
        case PROD -> value *= x;
        case AMAX -> value = Math.max(value, x);
        case AMIN -> value = Math.min(value, x);
        case ANY -> value = value != 0 || x != 0 ? 1 : 0;
        case ALL -> value = value != 0 && x != 0 ? 1 : 0;
        case FIRST_MAX -> value = first + i == 0 ? x : Math.max(value, x);
        case FIRST_MIN -> value = first + i == 0 ? x : Math.min(value, x);
        case ARGMAX, ARGMIN -> {
          if (value < 0 || (primitive == Primitive.ARGMAX ? x > kept[1] : x < kept[1])) {
            value = first + i;
            kept[1] = x;
          }
        }
        default -> throw new IllegalArgumentException(primitive.symbol() + " is not a fold");
      }
    }
    kept[0] = value;
  }

  /**
   * Combines each element with all before it.
   *
   * @param before what those of earlier blocks gave
   * @return what all gave
   */
  public static double scan(Primitive primitive, double before, double[] in, double[] out, int n) {
    double value = before;
    for (int i = 0; i < n; i++) {
      value =
          switch (primitive) {
            case CUMSUM -> value + in[i];
            case CUMPROD -> value * in[i];
            default -> throw new IllegalArgumentException(primitive.symbol() + " is not a scan");
          };
      out[i] = value;
    }
    return value;
  }

  /** As the one of floats. */
  public static long scan(Primitive primitive, long before, long[] in, long[] out, int n) {
    long value = before;
    for (int i = 0; i < n; i++) {
      value =
          switch (primitive) {
            case CUMSUM -> value + in[i];
            case CUMPROD -> value * in[i];
            default -> throw new IllegalArgumentException(primitive.symbol() + " is not a scan");
          };
      out[i] = value;
    }
    return value;
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

  /**
   * As {@link #doubles}, of integers.
   *
   * @throws ArithmeticException when one is divided by 0
   * @throws IndexOutOfBoundsException when a target is no class
   * @throws IllegalArgumentException when it is not of integers, or not of single elements
   */
  public static void longs(Primitive primitive, long[] a, long[] b, long[] c, long[] out, int n) {
    switch (primitive) {
      case SELECT -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] != 0 ? b[i] : c[i];
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
      case OR -> map((x, y) -> x != 0 || y != 0 ? 1 : 0, a, b, out, n);
      case AND -> map((x, y) -> x != 0 && y != 0 ? 1 : 0, a, b, out, n);
      case BIT_OR -> map((x, y) -> x | y, a, b, out, n);
      case BIT_XOR -> map((x, y) -> x ^ y, a, b, out, n);
      case BIT_AND -> map((x, y) -> x & y, a, b, out, n);
      case EQ -> map((x, y) -> x == y ? 1 : 0, a, b, out, n);
      case NE -> map((x, y) -> x != y ? 1 : 0, a, b, out, n);
      case LT -> map((x, y) -> x < y ? 1 : 0, a, b, out, n);
      case LE -> map((x, y) -> x <= y ? 1 : 0, a, b, out, n);
      case GT -> map((x, y) -> x > y ? 1 : 0, a, b, out, n);
      case GE -> map((x, y) -> x >= y ? 1 : 0, a, b, out, n);
      case SHIFT_LEFT -> map((x, y) -> x << y, a, b, out, n);
      case SHIFT_RIGHT -> map((x, y) -> x >> y, a, b, out, n);
      case DIV -> map((x, y) -> x / divisor(x, y), a, b, out, n);
      case FMOD -> map((x, y) -> x % divisor(x, y), a, b, out, n);
      case FLOOR_DIV -> map((x, y) -> Math.floorDiv(x, divisor(x, y)), a, b, out, n);
      case FLOOR_MOD -> map((x, y) -> Math.floorMod(x, divisor(x, y)), a, b, out, n);
      case NEG -> map((x, _) -> -x, a, a, out, n);
      case NOT -> map((x, _) -> x == 0 ? 1 : 0, a, a, out, n);
      case BIT_NOT -> map((x, _) -> ~x, a, a, out, n);
      case ABS -> map((x, _) -> Math.abs(x), a, a, out, n);
      case POW -> map(SpecialFunctions::pow, a, b, out, n);
      case FMIN, MINIMUM -> map(Math::min, a, b, out, n);
      case FMAX, MAXIMUM -> map(Math::max, a, b, out, n);
      case GCD -> map(SpecialFunctions::gcd, a, b, out, n);
      case LCM -> map(SpecialFunctions::lcm, a, b, out, n);
      default ->
          throw new IllegalArgumentException(primitive.symbol() + " is not of single integers");
    }
  }

  /**
   * {@return a target, which must be a class}
   *
   * @throws IndexOutOfBoundsException when it is not
   */
  public static long targetClass(long target, long classes) {
    if (target < 0 || target >= classes) {
      throw new IndexOutOfBoundsException(
          "target %d is out of range for %d classes".formatted(target, classes));
    }
    return target;
  }

  private static long divisor(long dividend, long divisor) {
    if (divisor == 0) {
      throw new ArithmeticException("integer division of " + dividend + " by zero");
    }
    return divisor;
  }

  private static void map(LongBinaryOperator f, long[] a, long[] b, long[] out, int n) {
    for (int i = 0; i < n; i++) {
      out[i] = f.applyAsLong(a[i], b[i]);
    }
  }
}
