package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableMap;
import org.jspecify.annotations.Nullable;

/**
 * Values of symbolic sizes, and sizes computed from them: integers, symbols, {@code + - * // % **},
 * parentheses, {@code Max(…)}, {@code Min(…)} and {@code FloorDiv(…)}, as sympy prints them.
 */
final class Symbols {

  /** A symbol without a value. */
  static final class Unknown extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String symbol;

    Unknown(String symbol) {
      super("the size " + symbol + " is not known", null, false, false);
      this.symbol = symbol;
    }

    String symbol() {
      return symbol;
    }
  }

  /** Deepest nesting of an expression of sizes. */
  private static final int MAX_DEPTH = 100;

  private final ImmutableMap<String, Long> values;
  private final ImmutableMap<String, Long> bounds;

  Symbols(ImmutableMap<String, Long> values, ImmutableMap<String, Long> bounds) {
    this.values = values;
    this.bounds = bounds;
  }

  /**
   * {@return the value of an expression}
   *
   * @throws Unknown when a symbol in it has no value
   * @throws IllegalArgumentException when it is malformed or overflows
   */
  long evaluate(String text) {
    boolean digits = !text.isEmpty() && text.length() < 18;
    for (int i = 0; digits && i < text.length(); i++) {
      digits = text.charAt(i) >= '0' && text.charAt(i) <= '9';
    }
    if (digits) {
      return Long.parseLong(text);
    }
    try {
      return new Reader(text).all();
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException("'%s': %s".formatted(text, e.getMessage()), e);
    }
  }

  static long apply(String operator, long a, long b) {
    return switch (operator) {
      case "+" -> Math.addExact(a, b);
      case "-" -> Math.subtractExact(a, b);
      case "*" -> Math.multiplyExact(a, b);
      case "//" -> Math.floorDiv(a, b);
      case "%" -> Math.floorMod(a, b);
      case "**" -> power(a, b);
      default -> throw new IllegalArgumentException("sizes have no operator " + operator);
    };
  }

  private static long power(long base, long exponent) {
    if (exponent < 0 || exponent > 62) {
      throw new ArithmeticException("exponent " + exponent);
    }
    long result = 1;
    for (long i = 0; i < exponent; i++) {
      result = Math.multiplyExact(result, base);
    }
    return result;
  }

  private long value(String symbol) {
    @Nullable Long value = values.get(symbol);
    if (value == null) {
      value = bounds.get(symbol);
    }
    if (value == null) {
      throw new Unknown(symbol);
    }
    return value;
  }

  /** Recursive descent over one expression. */
  private final class Reader {
    private final String text;
    private int at;
    private int depth;

    Reader(String text) {
      this.text = text;
    }

    long all() {
      long value = sum();
      if (at < text.length()) {
        throw wrong();
      }
      return value;
    }

    private IllegalArgumentException wrong() {
      return new IllegalArgumentException("no size is written '" + text + "'");
    }

    private boolean take(String sign) {
      skip();
      if (text.startsWith(sign, at)) {
        at += sign.length();
        return true;
      }
      return false;
    }

    private void skip() {
      while (at < text.length() && text.charAt(at) == ' ') {
        at++;
      }
    }

    private long sum() {
      if (++depth > MAX_DEPTH) {
        throw wrong();
      }
      long value = product();
      while (true) {
        if (take("+")) {
          value = apply("+", value, product());
        } else if (take("-")) {
          value = apply("-", value, product());
        } else {
          depth--;
          return value;
        }
      }
    }

    private long product() {
      long value = power();
      while (true) {
        skip();
        if (!text.startsWith("**", at) && take("*")) {
          value = apply("*", value, power());
        } else if (take("//")) {
          value = apply("//", value, power());
        } else if (take("%")) {
          value = apply("%", value, power());
        } else {
          return value;
        }
      }
    }

    private long power() {
      long base = atom();
      return take("**") ? apply("**", base, atom()) : base;
    }

    private long atom() {
      if (take("(")) {
        long value = sum();
        expect(")");
        return value;
      }
      if (take("-")) {
        if (++depth > MAX_DEPTH) {
          throw wrong();
        }
        long value = Math.negateExact(atom());
        depth--;
        return value;
      }
      skip();
      int start = at;
      while (at < text.length() && isWord(text.charAt(at))) {
        at++;
      }
      var word = text.substring(start, at);
      if (word.isEmpty()) {
        throw wrong();
      }
      if (Character.isDigit(word.charAt(0))) {
        try {
          return Long.parseLong(word);
        } catch (NumberFormatException e) {
          throw wrong();
        }
      }
      return take("(") ? function(word) : value(word);
    }

    private long function(String name) {
      long value = sum();
      while (take(",")) {
        long other = sum();
        value =
            switch (name) {
              case "Max" -> Math.max(value, other);
              case "Min" -> Math.min(value, other);
              case "FloorDiv" -> apply("//", value, other);
              case "Mod", "PythonMod" -> apply("%", value, other);
              default -> throw wrong();
            };
      }
      expect(")");
      return value;
    }

    private void expect(String sign) {
      if (!take(sign)) {
        throw wrong();
      }
    }

    private static boolean isWord(char c) {
      return c == '_' || (c < 128 && Character.isLetterOrDigit(c));
    }
  }
}
