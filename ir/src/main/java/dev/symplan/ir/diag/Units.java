package dev.symplan.ir.diag;

import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.OptionalLong;
import java.util.regex.Pattern;

/** Quantities as people read them, the same in every locale. */
public final class Units {
  private static final String[] NAMES = {"B", "KiB", "MiB", "GiB", "TiB"};

  private static final Pattern SIZE =
      Pattern.compile("([0-9]{1,18}(?:\\.[0-9]{1,9})?) ?(B|KiB|MiB|GiB|TiB)?");

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

  /** {@return the bytes of {@code 1000000}, {@code 512MiB} or {@code 1.5 GiB}; empty of others} */
  public static OptionalLong parseBytes(String text) {
    var size = SIZE.matcher(text.strip());
    if (!size.matches()) {
      return OptionalLong.empty();
    }
    int unit = size.group(2) == null ? 0 : Arrays.asList(NAMES).indexOf(size.group(2));
    double bytes = Double.parseDouble(size.group(1)) * Math.scalb(1.0, 10 * unit);
    return OptionalLong.of(Math.round(bytes));
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
