package dev.symplan.ir;

import java.math.BigDecimal;
import java.math.MathContext;

/** Strings and floats as Python writes and reads them, in any locale. */
public final class PythonLiterals {
  private static final int MIN_EXPONENT = -4;
  private static final int MAX_EXPONENT = 16;

  private PythonLiterals() {}

  /**
   * {@return as {@code repr}: {@code 1e-05}, {@code 0.5}, {@code 2.0}, {@code -inf}, {@code nan}}
   */
  public static String repr(double value) {
    if (Double.isNaN(value)) {
      return "nan";
    }
    if (Double.isInfinite(value)) {
      return value > 0 ? "inf" : "-inf";
    }
    if (value == 0) {
      return 1 / value > 0 ? "0.0" : "-0.0";
    }
    var decimal = shortest(Math.abs(value));
    var digits = decimal.unscaledValue().toString();
    int exponent = digits.length() - 1 - decimal.scale();
    var text = new StringBuilder(value < 0 ? "-" : "");
    if (exponent < MIN_EXPONENT || exponent >= MAX_EXPONENT) {
      text.append(digits.charAt(0));
      if (digits.length() > 1) {
        text.append('.').append(digits, 1, digits.length());
      }
      text.append(exponent < 0 ? "e-" : "e+");
      int size = Math.abs(exponent);
      return text.append(size < 10 ? "0" : "").append(size).toString();
    }
    if (exponent < 0) {
      return text.append("0.").append("0".repeat(-exponent - 1)).append(digits).toString();
    }
    if (digits.length() <= exponent + 1) {
      return text.append(digits)
          .append("0".repeat(exponent + 1 - digits.length()))
          .append(".0")
          .toString();
    }
    return text.append(digits, 0, exponent + 1)
        .append('.')
        .append(digits, exponent + 1, digits.length())
        .toString();
  }

  /** Java prefers two digits where Python takes one, if one is enough: 4.9E-324, 5e-324. */
  private static BigDecimal shortest(double value) {
    var decimal = new BigDecimal(Double.toString(value)).stripTrailingZeros();
    if (decimal.precision() == 2) {
      var rounded = decimal.round(new MathContext(1)).stripTrailingZeros();
      if (rounded.doubleValue() == value) {
        return rounded;
      }
    }
    return decimal;
  }

  /**
   * {@return the value of a literal as {@link #repr(double)} writes it, or of any other decimal
   * number}
   *
   * @throws NumberFormatException when it is none
   */
  public static double parseFloat(String text) {
    return switch (text) {
      case "inf" -> Double.POSITIVE_INFINITY;
      case "-inf" -> Double.NEGATIVE_INFINITY;
      case "nan" -> Double.NaN;
      default -> Double.parseDouble(text);
    };
  }

  /** {@return a literal in double quotes; what cannot be printed is escaped} */
  public static String quote(String value) {
    var text = new StringBuilder(value.length() + 2).append('"');
    value.codePoints().forEach(c -> appendEscaped(text, c));
    return text.append('"').toString();
  }

  private static void appendEscaped(StringBuilder text, int c) {
    switch (c) {
      case '"' -> text.append("\\\"");
      case '\\' -> text.append("\\\\");
      case '\n' -> text.append("\\n");
      case '\r' -> text.append("\\r");
      case '\t' -> text.append("\\t");
      default -> {
        if (isPrintable(c)) {
          text.appendCodePoint(c);
        } else if (c <= 0xFF) {
          text.append("\\x%02x".formatted(c));
        } else {
          text.append((c <= 0xFFFF ? "\\u%04x" : "\\U%08x").formatted(c));
        }
      }
    }
  }

  private static boolean isPrintable(int c) {
    return switch (Character.getType(c)) {
      case Character.CONTROL,
          Character.FORMAT,
          Character.SURROGATE,
          Character.PRIVATE_USE,
          Character.UNASSIGNED,
          Character.LINE_SEPARATOR,
          Character.PARAGRAPH_SEPARATOR ->
          false;
      case Character.SPACE_SEPARATOR -> c == ' ';
      default -> true;
    };
  }

  /**
   * {@return the string that a literal in single or double quotes stands for}
   *
   * @throws IllegalArgumentException when an escape in it is malformed
   */
  public static String unquote(String literal) {
    var text = literal.substring(1, literal.length() - 1);
    if (text.indexOf('\\') < 0) {
      return text;
    }
    var out = new StringBuilder(text.length());
    int at = 0;
    while (at < text.length()) {
      char c = text.charAt(at++);
      if (c == '\\') {
        at = appendUnescaped(out, text, at);
      } else {
        out.append(c);
      }
    }
    return out.toString();
  }

  private static int appendUnescaped(StringBuilder out, String text, int at) {
    char c = text.charAt(at);
    switch (c) {
      case '\\', '\'', '"' -> out.append(c);
      case 'n' -> out.append('\n');
      case 'r' -> out.append('\r');
      case 't' -> out.append('\t');
      case '0' -> out.append('\0');
      case 'a' -> out.append('\u0007');
      case 'b' -> out.append('\b');
      case 'f' -> out.append('\f');
      case 'v' -> out.append('\u000B');
      case 'x' -> {
        return appendCode(out, text, at, 2);
      }
      case 'u' -> {
        return appendCode(out, text, at, 4);
      }
      case 'U' -> {
        return appendCode(out, text, at, 8);
      }
      default -> throw new IllegalArgumentException("no escape '\\%c'".formatted(c));
    }
    return at + 1;
  }

  private static int appendCode(StringBuilder out, String text, int at, int digits) {
    int end = at + 1 + digits;
    int code = -1;
    if (end <= text.length()) {
      try {
        code = Integer.parseUnsignedInt(text.substring(at + 1, end), 16);
      } catch (NumberFormatException e) {
        code = -1;
      }
    }
    if (!Character.isValidCodePoint(code) || text.charAt(at + 1) == '+') {
      throw new IllegalArgumentException(
          "'\\%c' needs the %s hexadecimal digits of a character"
              .formatted(text.charAt(at), digits));
    }
    out.appendCodePoint(code);
    return end;
  }
}
