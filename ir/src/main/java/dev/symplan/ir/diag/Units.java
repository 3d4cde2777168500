package dev.symplan.ir.diag;

import java.time.Duration;
import java.util.Locale;

/** Quantities as people read them, the same in every locale. */
public final class Units {
  private static final String[] NAMES = {"B", "KiB", "MiB", "GiB", "TiB"};

  private Units() {}

  /** {@return for example {@code 512 B}, {@code 1.5 MiB}} */
  public static String bytes(long bytes) {
    if (bytes < 1024) {
      return bytes + " B";
    }
    double value = bytes;
    int unit = 0;
    while (value >= 1024 && unit < NAMES.length - 1) {
      value /= 1024;
      unit++;
    }
    return String.format(Locale.ROOT, "%.1f %s", value, NAMES[unit]);
  }

  /**
   * {@return for example {@code 1 step}, {@code 2 steps}, {@code 3 entries}}
   *
   * @param noun the singular
   */
  public static String count(long count, String noun) {
    var plural =
        noun.endsWith("ex") || noun.endsWith("ix")
            ? noun.substring(0, noun.length() - 2) + "ices"
            : noun.endsWith("py") || noun.endsWith("ry")
                ? noun.substring(0, noun.length() - 1) + "ies"
                : noun.endsWith("ss") || noun.endsWith("ch") ? noun + "es" : noun + "s";
    return count + " " + (count == 1 ? noun : plural);
  }

  /** {@return for example {@code 12.9 µs}, {@code 1.35 ms}} */
  public static String micros(double micros) {
    return micros < 1000
        ? String.format(Locale.ROOT, "%.1f µs", micros)
        : String.format(Locale.ROOT, "%.2f ms", micros / 1000);
  }

  /** {@return for example {@code 20 s}, {@code 1500 ms}} */
  public static String duration(Duration time) {
    return time.toMillis() % 1000 == 0 ? time.toSeconds() + " s" : time.toMillis() + " ms";
  }
}
