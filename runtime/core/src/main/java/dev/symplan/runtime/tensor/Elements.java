package dev.symplan.runtime.tensor;

import dev.symplan.codegen.expr.Rounding;
import dev.symplan.ir.DType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** Elements in memory: little-endian, at any address. */
public final class Elements {
  public static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  public static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  public static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  public static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  public static final ValueLayout.OfDouble DOUBLE =
      ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private static final double TWO_TO_63 = 0x1p63;

  /** Neighbours are copied to and from arrays at once: access to arrays costs less. */
  private static final int LEAST_COPIED = 8;

  private Elements() {}

  static double getDouble(MemorySegment memory, long offset, DType dtype) {
    return switch (dtype) {
      case F64 -> memory.get(DOUBLE, offset);
      case F32 -> memory.get(FLOAT, offset);
      case F16 -> Float.float16ToFloat(memory.get(SHORT, offset));
      case BF16 -> Rounding.fromBFloat16(memory.get(SHORT, offset));
      case I64, I32, I16, I8, U32, U16, U8, BOOL -> getLong(memory, offset, dtype);
      case U64 -> unsigned(memory.get(LONG, offset));
      case F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU ->
          Float8.fromBits(dtype, memory.get(ValueLayout.JAVA_BYTE, offset));
      case C32, C64, C128 -> throw unsupported(dtype);
    };
  }

  /** The bit that is shifted out is kept as a sticky bit, so that rounding is right. */
  private static double unsigned(long value) {
    return value >= 0 ? value : ((value >>> 1) | (value & 1)) * 2.0;
  }

  private static float unsignedToFloat(long value) {
    return value >= 0 ? value : ((value >>> 1) | (value & 1)) * 2f;
  }

  /** Towards 0; what is out of range gives the nearest. */
  private static long toUnsigned(double value) {
    return value < TWO_TO_63 ? (long) value : (long) (value - TWO_TO_63) ^ Long.MIN_VALUE;
  }

  static long getLong(MemorySegment memory, long offset, DType dtype) {
    return switch (dtype) {
      case I64, U64 -> memory.get(LONG, offset);
      case I32 -> memory.get(INT, offset);
      case U32 -> Integer.toUnsignedLong(memory.get(INT, offset));
      case I16 -> memory.get(SHORT, offset);
      case U16 -> Short.toUnsignedLong(memory.get(SHORT, offset));
      case I8 -> memory.get(ValueLayout.JAVA_BYTE, offset);
      case U8 -> Byte.toUnsignedLong(memory.get(ValueLayout.JAVA_BYTE, offset));
      case BOOL -> memory.get(ValueLayout.JAVA_BYTE, offset) != 0 ? 1 : 0;
      case F64, F32, F16, BF16, F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU ->
          (long) getDouble(memory, offset, dtype);
      case C32, C64, C128 -> throw unsupported(dtype);
    };
  }

  static void setDouble(MemorySegment memory, long offset, DType dtype, double value) {
    switch (dtype) {
      case F64 -> memory.set(DOUBLE, offset, value);
      case F32 -> memory.set(FLOAT, offset, (float) value);
      case F16 -> memory.set(SHORT, offset, Float.floatToFloat16((float) value));
      case BF16 -> memory.set(SHORT, offset, Rounding.toBFloat16((float) value));
      case BOOL -> memory.set(ValueLayout.JAVA_BYTE, offset, (byte) (value != 0 ? 1 : 0));
      case I64, I32, I16, I8, U32, U16, U8 -> setLong(memory, offset, dtype, (long) value);
      case U64 -> setLong(memory, offset, dtype, toUnsigned(value));
      case F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU ->
          memory.set(ValueLayout.JAVA_BYTE, offset, Float8.toBits(dtype, (float) value));
      case C32, C64, C128 -> throw unsupported(dtype);
    }
  }

  static void setLong(MemorySegment memory, long offset, DType dtype, long value) {
    switch (dtype) {
      case I64, U64 -> memory.set(LONG, offset, value);
      case I32, U32 -> memory.set(INT, offset, (int) value);
      case I16, U16 -> memory.set(SHORT, offset, (short) value);
      case I8, U8 -> memory.set(ValueLayout.JAVA_BYTE, offset, (byte) value);
      case BOOL -> memory.set(ValueLayout.JAVA_BYTE, offset, (byte) (value != 0 ? 1 : 0));
      case F64 -> memory.set(DOUBLE, offset, value);
      case F32, F16, BF16, F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU ->
          setDouble(memory, offset, dtype, (float) value);
      case C32, C64, C128 -> throw unsupported(dtype);
    }
  }

  public static void load(
      MemorySegment memory, long offset, long step, DType dtype, double[] into, int count) {
    load(memory, offset, step, dtype, into, 0, count);
  }

  /** Loads elements at equal distances into {@code into[start]} and after. */
  public static void load(
      MemorySegment memory,
      long offset,
      long step,
      DType dtype,
      double[] into,
      int start,
      int count) {
    if (step == dtype.bytes()
        && count >= LEAST_COPIED
        && loadCopied(memory, offset, dtype, into, start, count)) {
      return;
    }
    for (int i = 0; i < count; i++) {
      into[start + i] = getDouble(memory, offset + i * step, dtype);
    }
  }

  /** {@return whether the type is one of those whose neighbours are copied to an array first} */
  private static boolean loadCopied(
      MemorySegment memory, long offset, DType dtype, double[] into, int start, int count) {
    if (dtype == DType.F32) {
      var floats = new float[count];
      MemorySegment.copy(memory, FLOAT, offset, floats, 0, count);
      for (int i = 0; i < count; i++) {
        into[start + i] = floats[i];
      }
      return true;
    }
    if (dtype != DType.BF16 && dtype != DType.F16) {
      return false;
    }
    var bits = new short[count];
    MemorySegment.copy(memory, SHORT, offset, bits, 0, count);
    for (int i = 0; i < count; i++) {
      into[start + i] =
          dtype == DType.BF16 ? Rounding.fromBFloat16(bits[i]) : Float.float16ToFloat(bits[i]);
    }
    return true;
  }

  /**
   * Loads elements as numbers of f32: PyTorch rounds wide integers once, to the type that it
   * computes in, and by way of a double they would be rounded twice.
   */
  public static void loadAsFloats(
      MemorySegment memory,
      long offset,
      long step,
      DType dtype,
      double[] into,
      int start,
      int count) {
    switch (dtype) {
      case I64 -> {
        for (int i = 0; i < count; i++) {
          into[start + i] = (float) memory.get(LONG, offset + i * step);
        }
      }
      case U64 -> {
        for (int i = 0; i < count; i++) {
          into[start + i] = unsignedToFloat(memory.get(LONG, offset + i * step));
        }
      }
      default -> {
        load(memory, offset, step, dtype, into, start, count);
        for (int i = start; i < start + count; i++) {
          into[i] = (float) into[i];
        }
      }
    }
  }

  public static void load(
      MemorySegment memory, long offset, long step, DType dtype, long[] into, int count) {
    load(memory, offset, step, dtype, into, 0, count);
  }

  /** Loads elements at equal distances into {@code into[start]} and after. */
  public static void load(
      MemorySegment memory,
      long offset,
      long step,
      DType dtype,
      long[] into,
      int start,
      int count) {
    for (int i = 0; i < count; i++) {
      into[start + i] = getLong(memory, offset + i * step, dtype);
    }
  }

  public static void store(
      double[] from, int count, MemorySegment memory, long offset, long step, DType dtype) {
    store(from, 0, count, memory, offset, step, dtype);
  }

  /** Stores {@code from[start]} and what is after it at equal distances. */
  public static void store(
      double[] from,
      int start,
      int count,
      MemorySegment memory,
      long offset,
      long step,
      DType dtype) {
    if (step == dtype.bytes()
        && count >= LEAST_COPIED
        && storeCopied(from, start, count, memory, offset, dtype)) {
      return;
    }
    for (int i = 0; i < count; i++) {
      setDouble(memory, offset + i * step, dtype, from[start + i]);
    }
  }

  /** {@return whether the type is one of those whose neighbours are copied from an array} */
  private static boolean storeCopied(
      double[] from, int start, int count, MemorySegment memory, long offset, DType dtype) {
    if (dtype == DType.F32) {
      var floats = new float[count];
      for (int i = 0; i < count; i++) {
        floats[i] = (float) from[start + i];
      }
      MemorySegment.copy(floats, 0, memory, FLOAT, offset, count);
      return true;
    }
    if (dtype != DType.BF16 && dtype != DType.F16) {
      return false;
    }
    var bits = new short[count];
    for (int i = 0; i < count; i++) {
      float value = (float) from[start + i];
      bits[i] = dtype == DType.BF16 ? Rounding.toBFloat16(value) : Float.floatToFloat16(value);
    }
    MemorySegment.copy(bits, 0, memory, SHORT, offset, count);
    return true;
  }

  public static void store(
      long[] from, int count, MemorySegment memory, long offset, long step, DType dtype) {
    store(from, 0, count, memory, offset, step, dtype);
  }

  /** Stores {@code from[start]} and what is after it at equal distances. */
  public static void store(
      long[] from,
      int start,
      int count,
      MemorySegment memory,
      long offset,
      long step,
      DType dtype) {
    for (int i = 0; i < count; i++) {
      setLong(memory, offset + i * step, dtype, from[start + i]);
    }
  }

  /** {@return whether sums are made in the type; 8-bit floats can be converted and moved only} */
  public static boolean computes(DType dtype) {
    return switch (dtype) {
      case F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL -> true;
      case F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU, C32, C64, C128 -> false;
    };
  }

  private static UnsupportedOperationException unsupported(DType dtype) {
    return new UnsupportedOperationException(
        "the host backend does not compute with " + dtype.shortName());
  }
}
