package dev.symplan.codegen.expr;

import dev.symplan.ir.DType;

/** Numbers as narrower types have them. */
public final class Rounding {
  private static final int BF16_SHIFT = 16;
  private static final int BF16_QUIET_NAN = 0x0040;

  private Rounding() {}

  /** {@return the 16 bits of the bfloat16 nearest to {@code value}, ties to even} */
  public static short toBFloat16(float value) {
    int bits = Float.floatToRawIntBits(value);
    if (Float.isNaN(value)) {
      return (short) ((bits >>> BF16_SHIFT) | BF16_QUIET_NAN);
    }
    int rounding = 0x7FFF + ((bits >>> BF16_SHIFT) & 1);
    return (short) ((bits + rounding) >>> BF16_SHIFT);
  }

  public static float fromBFloat16(short bits) {
    return Float.intBitsToFloat(bits << BF16_SHIFT);
  }

  /** {@return a number, rounded to a float type of at most 32 bits; unchanged for other types} */
  public static double round(double value, DType dtype) {
    return switch (dtype) {
      case F32 -> (float) value;
      case BF16 -> fromBFloat16(toBFloat16((float) value));
      case F16 -> Float.float16ToFloat(Float.floatToFloat16((float) value));
      default -> value;
    };
  }

  /** {@return the largest finite number of a type that is computed in; f32's of integers} */
  static double largest(DType dtype) {
    return switch (dtype) {
      case F64 -> Double.MAX_VALUE;
      case F16 -> 65504;
      case BF16 -> 0x1.FEp127;
      default -> Float.MAX_VALUE;
    };
  }

  /** {@return the float next to one in the direction of another} */
  static double nextAfter(double a, double b, DType dtype) {
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
      float least = brain ? fromBFloat16((short) 1) : Float.float16ToFloat((short) 1);
      return Math.copySign(least, b);
    }
    short bits = brain ? toBFloat16((float) a) : Float.floatToFloat16((float) a);
    // Floats of one sign are ordered as their bits are.
    short next = (short) (bits + ((a < b) == (a > 0) ? 1 : -1));
    return brain ? fromBFloat16(next) : Float.float16ToFloat(next);
  }
}
