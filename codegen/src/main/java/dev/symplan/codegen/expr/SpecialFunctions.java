package dev.symplan.codegen.expr;

import org.apache.commons.numbers.gamma.InverseErfc;
import org.apache.commons.numbers.gamma.LogGamma;

/** Functions of one number as PyTorch defines them, where Java's differ or are none. */
public final class SpecialFunctions {
  private SpecialFunctions() {}

  /** From here on, asinh is the logarithm of twice the number. */
  private static final double ASINH_LARGE = 0x1p28;

  static double asinh(double x) {
    double size = Math.abs(x);
    double value =
        size < ASINH_LARGE
            ? Math.log1p(size + size * size / (1 + Math.hypot(1, size)))
            : Math.log(size) + Math.log(2);
    return Math.copySign(value, x);
  }

  static double acosh(double x) {
    return 2 * asinh(Math.sqrt((x - 1) / 2));
  }

  static double atanh(double x) {
    double size = Math.abs(x);
    return Math.copySign(0.5 * Math.log1p(2 * size / (1 - size)), x);
  }

  static double lgamma(double x) {
    if (x > 0 || Double.isNaN(x)) {
      return LogGamma.value(x);
    }
    if (Double.isInfinite(x) || x == Math.rint(x)) {
      return Double.POSITIVE_INFINITY;
    }
    // The reflection formula, with the sine's argument reduced for accuracy.
    double rest = x - Math.rint(x);
    return Math.log(Math.PI / Math.abs(Math.sin(Math.PI * rest))) - LogGamma.value(1 - x);
  }

  /**
   * The logarithmic derivative of Γ: reflected, shifted to 10 and up, then its asymptotic series.
   */
  static double digamma(double x) {
    if (x == 0) {
      return Math.copySign(Double.POSITIVE_INFINITY, -x);
    }
    if (x < 0) {
      double rest = x - Math.rint(x);
      return rest == 0 ? Double.NaN : digamma(1 - x) - Math.PI / Math.tan(Math.PI * rest);
    }
    double shift = 0;
    double y = x;
    while (y < DIGAMMA_LARGE) {
      shift += 1 / y;
      y += 1;
    }
    double square = 1 / (y * y);
    double series = 0;
    for (double coefficient : DIGAMMA_SERIES) {
      series = (series + coefficient) * square;
    }
    return Math.log(y) - 0.5 / y - series - shift;
  }

  private static final double DIGAMMA_LARGE = 10;

  /** The Bernoulli numbers B(2k) over 2k, for k from 7 down to 1. */
  private static final double[] DIGAMMA_SERIES = {
    1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12
  };

  /**
   * The modified Bessel function of order 0.
   *
   * <p>By its power series, and for large numbers by its integral, the mean of {@code exp(x cos t)}
   * over a period, by the trapezoidal rule, which converges exponentially for periodic functions.
   */
  static double besselI0(double x) {
    double size = Math.abs(x);
    if (size < BESSEL_LARGE) {
      double quarter = size * size / 4;
      double sum = 1;
      double term = 1;
      for (int k = 1; sum + term != sum; k++) {
        term *= quarter / ((double) k * k);
        sum += term;
      }
      return sum;
    }
    if (!(size <= MAX_EXPONENT)) {
      return Double.isNaN(x) ? x : Double.POSITIVE_INFINITY;
    }
    int points = 30 + (int) (9 * Math.sqrt(size));
    double sum = 0;
    for (int i = 0; i < points; i++) {
      sum += Math.exp(size * (Math.cos(2 * Math.PI * i / points) - 1));
    }
    return sum / points * Math.exp(size);
  }

  private static final double BESSEL_LARGE = 50;
  private static final double MAX_EXPONENT = 709;

  static double ndtri(double x) {
    return -Math.sqrt(2) * InverseErfc.value(2 * x);
  }

  /** C's pow, which takes 1 to any power and -1 to infinite powers as 1. */
  static double pow(double base, double exponent) {
    if (base == 1 || (base == -1 && Double.isInfinite(exponent))) {
      return 1;
    }
    return Math.pow(base, exponent);
  }

  static long pow(long base, long exponent) {
    if (exponent < 0) {
      return switch ((int) Math.clamp(base, -2, 2)) {
        case 1 -> 1;
        case -1 -> exponent % 2 == 0 ? 1 : -1;
        default -> 0;
      };
    }
    long result = 1;
    long square = base;
    for (long rest = exponent; rest > 0; rest >>= 1) {
      result *= (rest & 1) == 1 ? square : 1;
      square *= square;
    }
    return result;
  }

  public static double logAddExp(double a, double b) {
    if (a == b && Double.isInfinite(a)) {
      return a;
    }
    return Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));
  }

  static long gcd(long a, long b) {
    long x = a;
    long y = b;
    while (y != 0) {
      long rest = x % y;
      x = y;
      y = rest;
    }
    return Math.abs(x);
  }

  static long lcm(long a, long b) {
    return a == 0 || b == 0 ? 0 : Math.abs(a / gcd(a, b) * b);
  }

  /** {@return the quotient, rounded down as Python and PyTorch do} */
  static double floorDiv(double a, double b) {
    if (b == 0) {
      return a / b;
    }
    double rest = a % b;
    double quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0)) {
      quotient -= 1;
    }
    return quotient == 0 ? Math.copySign(0, a / b) : Math.rint(quotient);
  }
}
