package dev.symplan.runtime.tensor;

import dev.symplan.ir.DType;

/**
 * The 8-bit floats of the OCP 8-bit floating point specification and its finite relatives, as
 * PyTorch converts them: to the nearest, ties to even.
 */
final class Float8 {
  private static final int VALUES = 256;
  private static final int SIGN = 0x80;

  private static final Float8 E4M3FN = new Float8(4, 3, 7, Special.NAN_LAST);
  private static final Float8 E5M2 = new Float8(5, 2, 15, Special.IEEE);
  private static final Float8 E4M3FNUZ = new Float8(4, 3, 8, Special.NAN_IS_NEGATIVE_ZERO);
  private static final Float8 E5M2FNUZ = new Float8(5, 2, 16, Special.NAN_IS_NEGATIVE_ZERO);

  private static final int E8M0_BIAS = 127;
  private static final int E8M0_NAN = 0xFF;

  /** The bits that stand for no finite number. */
  private enum Special {
    /** The largest exponent is infinity and NaN. */
    IEEE,
    /** All ones are NaN; what is too large, infinity too, becomes the largest number. */
    NAN_LAST,
    /** The bits of -0 are NaN, and numbers that are too large become NaN. */
    NAN_IS_NEGATIVE_ZERO
  }

  private final int mantissaBits;
  private final int bias;
  private final Special special;

  /** Of all 256 bit patterns. */
  private final float[] values = new float[VALUES];

  /** The positive pattern after that of the largest finite number. */
  private final int limit;

  private Float8(int exponentBits, int mantissaBits, int bias, Special special) {
    this.mantissaBits = mantissaBits;
    this.bias = bias;
    this.special = special;
    this.limit =
        switch (special) {
          case IEEE -> ((1 << exponentBits) - 1) << mantissaBits;
          case NAN_LAST -> SIGN - 1;
          case NAN_IS_NEGATIVE_ZERO -> SIGN;
        };
    for (int bits = 0; bits < VALUES; bits++) {
      values[bits] = decode(bits);
    }
  }

  private float decode(int bits) {
    int size = bits & (SIGN - 1);
    float sign = bits < SIGN ? 1 : -1;
    if (bits == SIGN && special == Special.NAN_IS_NEGATIVE_ZERO) {
      return Float.NaN;
    }
    if (size >= limit) {
      return special == Special.IEEE && size == limit ? sign * Float.POSITIVE_INFINITY : Float.NaN;
    }
    int exponent = size >> mantissaBits;
    int mantissa = size & ((1 << mantissaBits) - 1);
    int significand = exponent == 0 ? mantissa : mantissa | (1 << mantissaBits);
    return sign * Math.scalb((float) significand, Math.max(1, exponent) - bias - mantissaBits);
  }

  private byte encode(float value) {
    int sign = Float.floatToRawIntBits(value) < 0 ? SIGN : 0;
    if (Float.isNaN(value)) {
      return (byte) (special == Special.NAN_IS_NEGATIVE_ZERO ? SIGN : sign | (SIGN - 1));
    }
    int size = nearest(Math.abs(value));
    if (size >= limit) {
      return (byte)
          switch (special) {
            case IEEE -> sign | limit;
            case NAN_LAST -> sign | (limit - 1);
            case NAN_IS_NEGATIVE_ZERO -> SIGN;
          };
    }
    return (byte) (size == 0 && special == Special.NAN_IS_NEGATIVE_ZERO ? 0 : sign | size);
  }

  /** {@return the pattern nearest to a number, as though the exponent had no end} */
  private int nearest(float size) {
    if (Float.isInfinite(size)) {
      return limit;
    }
    int exponent = Math.max(Math.getExponent(size), 1 - bias);
    // Exact: at most 24 bits, and rint rounds ties to even.
    double significand = Math.rint(Math.scalb((double) size, mantissaBits - exponent));
    long pattern = (long) significand + ((long) (exponent + bias - 1) << mantissaBits);
    return (int) Math.min(pattern, limit);
  }

  private static Float8 of(DType dtype) {
    return switch (dtype) {
      case F8E4M3FN -> E4M3FN;
      case F8E5M2 -> E5M2;
      case F8E4M3FNUZ -> E4M3FNUZ;
      case F8E5M2FNUZ -> E5M2FNUZ;
      default -> throw new IllegalArgumentException(dtype.shortName());
    };
  }

  static float fromBits(DType dtype, byte bits) {
    return dtype == DType.F8E8M0FNU
        ? fromExponent(bits)
        : of(dtype).values[Byte.toUnsignedInt(bits)];
  }

  static byte toBits(DType dtype, float value) {
    return dtype == DType.F8E8M0FNU ? toExponent(value) : of(dtype).encode(value);
  }

  /** A power of two, by its biased exponent. */
  private static float fromExponent(byte bits) {
    int exponent = Byte.toUnsignedInt(bits);
    return exponent == E8M0_NAN ? Float.NaN : Math.scalb(1f, exponent - E8M0_BIAS);
  }

  /** The sign is dropped, the number rounded to the nearest power of two, ties upwards. */
  private static byte toExponent(float value) {
    int bits = Float.floatToRawIntBits(value) & Integer.MAX_VALUE;
    int exponent = bits >>> FLOAT_MANTISSA;
    if (exponent == E8M0_NAN) {
      return (byte) E8M0_NAN;
    }
    int mantissa = bits & ((1 << FLOAT_MANTISSA) - 1);
    int half = 1 << (FLOAT_MANTISSA - 1);
    boolean up = exponent == 0 ? mantissa > half : mantissa >= half;
    return (byte) (exponent + (up ? 1 : 0));
  }

  private static final int FLOAT_MANTISSA = 23;
}
