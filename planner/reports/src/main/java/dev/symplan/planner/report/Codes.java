package dev.symplan.planner.report;

import com.google.common.base.Ascii;

/** The names of constants in plan files, reports and documents. */
final class Codes {
  private Codes() {}

  /** {@return for example {@code zero_copy}} */
  static String of(Enum<?> constant) {
    return Ascii.toLowerCase(constant.name());
  }
}
