package dev.symplan.codegen.cuda;

import dev.symplan.ir.DType;
import java.util.regex.Pattern;

/** The types that hold elements in CUDA C++, and the types that compute with them. */
final class CTypes {

  /** Conversions that all generated kernels begin with; no header is needed. */
  static final String PRELUDE =
      """
      typedef unsigned short half_bits;
      typedef unsigned short bfloat_bits;

      __device__ __forceinline__ float from_bf16(bfloat_bits bits) {
        return __uint_as_float((unsigned)bits << 16);
      }

      __device__ __forceinline__ bfloat_bits to_bf16(float value) {
        bfloat_bits bits;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
        return bits;
      }

      __device__ __forceinline__ float from_f16(half_bits bits) {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
      }

      __device__ __forceinline__ half_bits to_f16(float value) {
        half_bits bits;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
        return bits;
      }
      """;

  /** Conversions of 8-bit floats, which round to even: see {@link #withConversions}. */
  private static final String FLOAT8 =
      """

      __device__ __forceinline__ float from_e4m3(unsigned char bits) {
        unsigned size = bits & 127;
        float value = size == 127 ? __uint_as_float(0x7fc00000u)
            : size < 8 ? size * 0x1p-9f
            : __uint_as_float((size << 20) + (120u << 23));
        return bits & 128 ? -value : value;
      }

      __device__ __forceinline__ unsigned char to_e4m3(float value) {
        unsigned bits = __float_as_uint(value);
        unsigned size = bits & 0x7fffffffu;
        // There is no infinity: what is too large becomes the largest, 448.
        unsigned rounded = size > 0x7f800000u ? 127
            : size > 0x43e00000u ? 126
            : size < 0x3c800000u ? (unsigned)rint(__uint_as_float(size) * 0x1p9f)
            : ((size + 0x7ffffu + (size >> 20 & 1)) >> 20) - (120u << 3);
        return rounded | (bits >> 24 & 128);
      }

      __device__ __forceinline__ float from_e5m2(unsigned char bits) {
        unsigned size = bits & 127;
        float value = size > 124 ? __uint_as_float(0x7fc00000u)
            : size == 124 ? __uint_as_float(0x7f800000u)
            : size < 4 ? size * 0x1p-16f
            : __uint_as_float((size << 21) + (112u << 23));
        return bits & 128 ? -value : value;
      }

      __device__ __forceinline__ unsigned char to_e5m2(float value) {
        unsigned bits = __float_as_uint(value);
        unsigned size = bits & 0x7fffffffu;
        // 61440 is half of a step beyond the largest.
        unsigned rounded = size > 0x7f800000u ? 127
            : size >= 0x47700000u ? 124
            : size < 0x38800000u ? (unsigned)rint(__uint_as_float(size) * 0x1p16f)
            : ((size + 0xfffffu + (size >> 21 & 1)) >> 21) - (112u << 2);
        return rounded | (bits >> 24 & 128);
      }

      // Those without an infinity and a negative zero, whose bits are NaN.
      __device__ __forceinline__ float from_e4m3fnuz(unsigned char bits) {
        unsigned size = bits & 127;
        float value = bits == 128 ? __uint_as_float(0x7fc00000u)
            : size < 8 ? size * 0x1p-10f
            : __uint_as_float((size << 20) + (119u << 23));
        return bits & 128 ? -value : value;
      }

      __device__ __forceinline__ unsigned char to_e4m3fnuz(float value) {
        unsigned bits = __float_as_uint(value);
        unsigned size = bits & 0x7fffffffu;
        unsigned rounded = size >= 0x7f800000u ? 128
            : size < 0x3c000000u ? (unsigned)rint(__uint_as_float(size) * 0x1p10f)
            : ((size + 0x7ffffu + (size >> 20 & 1)) >> 20) - (119u << 3);
        return rounded > 127 ? 128 : rounded == 0 ? 0 : rounded | (bits >> 24 & 128);
      }

      __device__ __forceinline__ float from_e5m2fnuz(unsigned char bits) {
        unsigned size = bits & 127;
        float value = bits == 128 ? __uint_as_float(0x7fc00000u)
            : size < 4 ? size * 0x1p-17f
            : __uint_as_float((size << 21) + (111u << 23));
        return bits & 128 ? -value : value;
      }

      __device__ __forceinline__ unsigned char to_e5m2fnuz(float value) {
        unsigned bits = __float_as_uint(value);
        unsigned size = bits & 0x7fffffffu;
        unsigned rounded = size >= 0x7f800000u ? 128
            : size < 0x38000000u ? (unsigned)rint(__uint_as_float(size) * 0x1p17f)
            : ((size + 0xfffffu + (size >> 21 & 1)) >> 21) - (111u << 2);
        return rounded > 127 ? 128 : rounded == 0 ? 0 : rounded | (bits >> 24 & 128);
      }

      // Powers of two, the nearest ones, ties upwards.
      __device__ __forceinline__ float from_e8m0(unsigned char bits) {
        return __uint_as_float(
            bits == 255 ? 0x7fc00000u : bits == 0 ? 0x400000u : (unsigned)bits << 23);
      }

      __device__ __forceinline__ unsigned char to_e8m0(float value) {
        unsigned size = __float_as_uint(value) & 0x7fffffffu;
        unsigned exponent = size >> 23, mantissa = size & 0x7fffffu;
        return exponent == 255 ? 255
            : exponent + (exponent == 0 ? mantissa > 0x400000u : mantissa >= 0x400000u);
      }
      """;

  private static final Pattern FLOAT8_NAMES =
      Pattern.compile("_(e4m3|e5m2|e4m3fnuz|e5m2fnuz|e8m0)\\(");

  private CTypes() {}

  /** {@return a kernel's text, with those conversions and functions that only some kernels call} */
  static String withConversions(String text) {
    var added = text;
    if (FLOAT8_NAMES.matcher(text).find() && !text.contains(FLOAT8)) {
      added = added.replace(PRELUDE, PRELUDE + FLOAT8);
    }
    if (SpecialText.isCalled(text) && !text.contains(SpecialText.FUNCTIONS)) {
      added = added.replace(PRELUDE, PRELUDE + SpecialText.FUNCTIONS);
    }
    return added;
  }

  /** {@return whether generated kernels compute with such elements} */
  static boolean computes(DType dtype) {
    return switch (dtype) {
      case F64, F32, F16, BF16, F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU -> true;
      case I64, I32, I16, I8, U64, U32, U16, U8, BOOL -> true;
      case C32, C64, C128 -> false;
    };
  }

  /** {@return the type that an element has in memory} */
  static String stored(DType dtype) {
    return switch (dtype) {
      case F64 -> "double";
      case F32 -> "float";
      case F16 -> "half_bits";
      case BF16 -> "bfloat_bits";
      case I64 -> "long long";
      case I32 -> "int";
      case I16 -> "short";
      case I8 -> "signed char";
      case U64 -> "unsigned long long";
      case U32 -> "unsigned";
      case U16 -> "unsigned short";
      case U8, BOOL, F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU -> "unsigned char";
      case C32, C64, C128 -> throw new IllegalArgumentException(dtype.shortName());
    };
  }

  /** {@return the type that an element is computed with} */
  static String computed(DType dtype) {
    return switch (dtype) {
      case F64 -> "double";
      case F32, F16, BF16, F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU -> "float";
      case U64 -> "unsigned long long";
      default -> "long long";
    };
  }

  /** {@return an element in memory in the type of the computation} */
  static String widen(DType dtype, String stored) {
    return switch (dtype) {
      case F16 -> "from_f16(" + stored + ")";
      case BF16 -> "from_bf16(" + stored + ")";
      case F8E4M3FN -> "from_e4m3(" + stored + ")";
      case F8E5M2 -> "from_e5m2(" + stored + ")";
      case F8E8M0FNU -> "from_e8m0(" + stored + ")";
      case F8E5M2FNUZ -> "from_e5m2fnuz(" + stored + ")";
      case F8E4M3FNUZ -> "from_e4m3fnuz(" + stored + ")";
      default -> "(" + computed(dtype) + ")(" + stored + ")";
    };
  }

  /** {@return a computed value as it is stored} */
  static String narrow(DType dtype, String computed) {
    return switch (dtype) {
      case F16 -> "to_f16(" + computed + ")";
      case BF16 -> "to_bf16(" + computed + ")";
      case F8E4M3FN -> "to_e4m3(" + computed + ")";
      case F8E5M2 -> "to_e5m2(" + computed + ")";
      case F8E8M0FNU -> "to_e8m0(" + computed + ")";
      case F8E5M2FNUZ -> "to_e5m2fnuz(" + computed + ")";
      case F8E4M3FNUZ -> "to_e4m3fnuz(" + computed + ")";
      case BOOL -> "(unsigned char)((" + computed + ") != 0)";
      default -> "(" + stored(dtype) + ")(" + computed + ")";
    };
  }

  /**
   * {@return a variable as it is stored: what its value was widened from, if it was}
   *
   * @param value an expression, the variable's value
   */
  static String narrow(DType dtype, String variable, String value) {
    var prefix = widen(dtype, "");
    prefix = prefix.substring(0, prefix.length() - 1);
    boolean widened =
        prefix.startsWith("from_")
            && value.startsWith(prefix)
            && closesAtEnd(value, prefix.length());
    return widened ? value.substring(prefix.length(), value.length() - 1) : narrow(dtype, variable);
  }

  /** Whether the parenthesis before a position closes where the text ends. */
  private static boolean closesAtEnd(String text, int position) {
    int open = 1;
    int at = position;
    while (at < text.length() && open > 0) {
      char c = text.charAt(at++);
      open += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
    return open == 0 && at == text.length();
  }

  /** {@return an unsigned type of so many bytes, for elements that are only moved} */
  static String bits(int bytes) {
    return switch (bytes) {
      case 1 -> "unsigned char";
      case 2 -> "unsigned short";
      case 4 -> "unsigned";
      case 8 -> "unsigned long long";
      case 16 -> "uint4";
      default -> throw new IllegalArgumentException(bytes + " bytes");
    };
  }
}
