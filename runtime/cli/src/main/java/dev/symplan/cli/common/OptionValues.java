package dev.symplan.cli.common;

import com.google.common.base.Ascii;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.function.Function;
import java.util.regex.Pattern;
import picocli.CommandLine;
import picocli.CommandLine.TypeConversionException;

/** Reads what options are given. Errors are for people who do not know Java's types. */
final class OptionValues {
  private static final Pattern WHOLE = Pattern.compile("[+-]?[0-9]+");
  private static final Pattern NUMBER =
      Pattern.compile("[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?");

  private OptionValues() {}

  /** The value of an option that is on or off. */
  enum Switch {
    ON,
    OFF;

    boolean isOn() {
      return this == ON;
    }

    private static Switch of(String text) {
      return switch (Ascii.toLowerCase(text)) {
        case "on" -> ON;
        case "off" -> OFF;
        default -> throw new TypeConversionException("'%s' is neither on nor off".formatted(text));
      };
    }
  }

  static void register(CommandLine line) {
    line.registerConverter(Path.class, OptionValues::path)
        .registerConverter(Switch.class, Switch::of)
        .registerConverter(Integer.class, text -> whole(text, Integer::valueOf))
        .registerConverter(int.class, text -> whole(text, Integer::valueOf))
        .registerConverter(Long.class, text -> whole(text, Long::valueOf))
        .registerConverter(long.class, text -> whole(text, Long::valueOf))
        .registerConverter(SizeRange.class, SizeRange::of)
        .registerConverter(Double.class, OptionValues::number)
        .registerConverter(double.class, OptionValues::number);
  }

  /**
   * An empty path would be the current folder, which is rarely meant: a shell variable is empty.
   */
  private static Path path(String text) {
    if (text.isEmpty()) {
      throw new TypeConversionException("'' is not a path");
    }
    try {
      return Path.of(text);
    } catch (InvalidPathException e) {
      throw new TypeConversionException("'%s' is not a path: %s".formatted(text, e.getReason()));
    }
  }

  static <N> N whole(String text, Function<String, N> read) {
    if (!WHOLE.matcher(text).matches()) {
      throw new TypeConversionException("'%s' is not a whole number".formatted(text));
    }
    try {
      return read.apply(text);
    } catch (NumberFormatException e) {
      throw new TypeConversionException("%s is out of range".formatted(text));
    }
  }

  private static Double number(String text) {
    if (!NUMBER.matcher(text).matches()) {
      throw new TypeConversionException("'%s' is not a number".formatted(text));
    }
    return Double.valueOf(text);
  }
}
