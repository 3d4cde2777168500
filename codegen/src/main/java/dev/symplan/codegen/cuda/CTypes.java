package dev.symplan.codegen.cuda;

import dev.symplan.ir.DType;

/** How element types are kept and computed with in CUDA C++. */
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

  private CTypes() {}

  /** {@return whether generated kernels compute with such elements} */
  static boolean computes(DType dtype) {
    return switch (dtype) {
      case F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL -> true;
      case F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU, C32, C64, C128 -> false;
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
      case U8, BOOL -> "unsigned char";
      case F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU, C32, C64, C128 ->
          throw new IllegalArgumentException(dtype.shortName());
    };
  }

  /** {@return the type that an element is computed with} */
  static String computed(DType dtype) {
    return switch (dtype) {
      case F64 -> "double";
      case F32, F16, BF16 -> "float";
      case U64 -> "unsigned long long";
      default -> "long long";
    };
  }

  /** {@return an element in memory in the type of the computation} */
  static String widen(DType dtype, String stored) {
    return switch (dtype) {
      case F16 -> "from_f16(" + stored + ")";
      case BF16 -> "from_bf16(" + stored + ")";
      default -> "(" + computed(dtype) + ")(" + stored + ")";
    };
  }

  /** {@return a computed value as it is stored} */
  static String narrow(DType dtype, String computed) {
    return switch (dtype) {
      case F16 -> "to_f16(" + computed + ")";
      case BF16 -> "to_bf16(" + computed + ")";
      case BOOL -> "(unsigned char)((" + computed + ") != 0)";
      default -> "(" + stored(dtype) + ")(" + computed + ")";
    };
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
