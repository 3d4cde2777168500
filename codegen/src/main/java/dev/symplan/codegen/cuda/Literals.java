package dev.symplan.codegen.cuda;

/** Numbers in CUDA C++, exactly. */
final class Literals {
  private Literals() {}

  static String integer(long value) {
    return value == Long.MIN_VALUE ? "(-9223372036854775807LL - 1)" : "(" + value + "LL)";
  }

  /**
   * @param wide whether it is a double
   */
  static String floating(double value, boolean wide) {
    if (Double.isNaN(value)) {
      return wide ? "__longlong_as_double(0x7ff8000000000000LL)" : "__int_as_float(0x7fc00000)";
    }
    if (Double.isInfinite(wide ? value : (float) value)) {
      var infinity =
          wide ? "__longlong_as_double(0x7ff0000000000000LL)" : "__int_as_float(0x7f800000)";
      return value > 0 ? infinity : "(-" + infinity + ")";
    }
    return wide
        ? "(" + Double.toHexString(value) + ")"
        : "(" + Float.toHexString((float) value) + "f)";
  }
}
