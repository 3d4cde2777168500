package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.DType;
import java.util.regex.Pattern;

/** Functions that CUDA does not have, as {@code SpecialFunctions} has them. */
final class SpecialText {
  private static final ImmutableList<String> NAMES =
      ImmutableList.of(
          "digamma", "bessel_i0", "common_divisor", "common_multiple", "whole_power", "next_");

  private static final Pattern CALLED =
      Pattern.compile("\\b(%s)\\w*\\(".formatted(String.join("|", NAMES)));

  static final String FUNCTIONS =
      """

      __device__ __noinline__ double digamma(double x) {
        if (x == 0) {
          return -1 / x;
        }
        double reflected = 0;
        if (x < 0) {
          const double rest = x - rint(x);
          if (rest == 0) {
            return __longlong_as_double(0x7ff8000000000000LL);
          }
          reflected = 0x1.921fb54442d18p1 / tan(0x1.921fb54442d18p1 * rest);
          x = 1 - x;
        }
        double shift = 0;
        while (x < 10) {
          shift += 1 / x;
          x += 1;
        }
        // The Bernoulli numbers B(2k) over 2k, for k from 7 down to 1.
        const double terms[] = {1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252,
            -1.0 / 120, 1.0 / 12};
        const double square = 1 / (x * x);
        double series = 0;
        for (int k = 0; k < 7; k++) {
          series = (series + terms[k]) * square;
        }
        return log(x) - 0.5 / x - series - shift - reflected;
      }

      __device__ __noinline__ double bessel_i0(double x) {
        const double size = x < 0 ? -x : x;
        if (size < 50) {
          const double quarter = size * size / 4;
          double sum = 1, term = 1;
          for (int k = 1; sum + term != sum; k++) {
            term *= quarter / ((double)k * k);
            sum += term;
          }
          return sum;
        }
        if (!(size <= 709)) {
          return x != x ? x : __longlong_as_double(0x7ff0000000000000LL);
        }
        const int points = 30 + (int)(9 * sqrt(size));
        double sum = 0;
        for (int i = 0; i < points; i++) {
          sum += exp(size * (cos(2 * 0x1.921fb54442d18p1 * i / points) - 1));
        }
        return sum / points * exp(size);
      }

      __device__ __forceinline__ long long common_divisor(long long a, long long b) {
        while (b != 0) {
          const long long rest = b == -1 ? 0 : a % b;
          a = b;
          b = rest;
        }
        return a < 0 ? -a : a;
      }

      __device__ __forceinline__ long long common_multiple(long long a, long long b) {
        if (a == 0 || b == 0) {
          return 0;
        }
        const long long multiple = a / common_divisor(a, b) * b;
        return multiple < 0 ? -multiple : multiple;
      }

      __device__ __forceinline__ long long whole_power(long long base, long long exponent) {
        if (exponent < 0) {
          return base == 1 || base == -1 && exponent % 2 == 0 ? 1 : base == -1 ? -1 : 0;
        }
        unsigned long long result = 1, square = (unsigned long long)base;
        for (; exponent > 0; exponent >>= 1) {
          result *= exponent & 1 ? square : 1;
          square *= square;
        }
        return (long long)result;
      }

      __device__ __forceinline__ double next_number(double x, double y) {
        const long long bits = __double_as_longlong(x);
        return x != x || y != y ? x + y : x == y ? y
            : x == 0 ? __longlong_as_double(y < 0 ? (long long)(1ULL << 63 | 1) : 1)
            : __longlong_as_double((x < y) == (x > 0) ? bits + 1 : bits - 1);
      }

      // The next number of those whose bits are multiples of a step.
      __device__ __forceinline__ float next_multiple(float x, float y, unsigned step) {
        const unsigned bits = __float_as_uint(x);
        return x != x || y != y ? x + y : x == y ? y
            : x == 0 ? __uint_as_float(y < 0 ? 1u << 31 | step : step)
            : __uint_as_float((x < y) == (x > 0) ? bits + step : bits - step);
      }

      __device__ __forceinline__ float next_number(float x, float y) {
        return next_multiple(x, y, 1);
      }

      __device__ __forceinline__ float next_bf16(float x, float y) {
        return next_multiple(x, y, 1u << 16);
      }

      __device__ __forceinline__ float next_f16(float x, float y) {
        const half_bits bits = to_f16(x);
        return x != x || y != y ? x + y : x == y ? y
            : from_f16(x == 0 ? (y < 0 ? 0x8001 : 1)
                : (half_bits)((x < y) == (x > 0) ? bits + 1 : bits - 1));
      }
      """;

  private SpecialText() {}

  static boolean isCalled(String text) {
    // To look for words takes much longer than for letters, which few texts have.
    return NAMES.stream().anyMatch(text::contains) && CALLED.matcher(text).find();
  }

  /** {@return an expression with the functions of a type that is computed in a longer one} */
  static String in(DType dtype, String text) {
    return switch (dtype) {
      case BF16 -> text.replace("next_number(", "next_bf16(");
      case F16 -> text.replace("next_number(", "next_f16(");
      default -> text;
    };
  }
}
