package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSortedMap;
import dev.symplan.ir.Arg;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Values of symbolic sizes, and what is computed from them, as sympy prints it: integers, symbols,
 * {@code + - * / // % **}, parentheses, {@code Max}, {@code Min}, {@code Mod}, {@code FloorDiv},
 * and comparisons of such expressions.
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

  private static final ImmutableList<String> COMPARISONS =
      ImmutableList.of("Lt", "Le", "Gt", "Ge", "Eq", "Ne");

  /** The longer ones first: {@code <} begins {@code <=}. */
  private static final ImmutableList<String> SIGNS =
      ImmutableList.of("<=", ">=", "==", "!=", "<", ">");

  private final ImmutableMap<String, Long> values;
  private final ImmutableMap<String, Long> bounds;
  private final SortedMap<String, Long> used = new TreeMap<>();

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
    if (constant(text) instanceof Arg.Int(long value)) {
      return value;
    }
    throw new IllegalArgumentException("no size is written '" + text + "'");
  }

  /**
   * {@return the value of an expression, an integer, or of a comparison}
   *
   * @throws Unknown when a symbol in it has no value
   * @throws IllegalArgumentException when it is malformed or overflows
   */
  Arg constant(String text) {
    if (text.equals("True") || text.equals("False")) {
      return new Arg.Bool(text.equals("True"));
    }
    try {
      return new Reader(text).all();
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException("'%s': %s".formatted(text, e.getMessage()), e);
    }
  }

  /**
   * {@return the value of {@code a < b} and the like; absent where the operator is no comparison}
   */
  static Optional<Boolean> compare(String operator, long a, long b) {
    return switch (operator) {
      case "<", "Lt" -> Optional.of(a < b);
      case "<=", "Le" -> Optional.of(a <= b);
      case ">", "Gt" -> Optional.of(a > b);
      case ">=", "Ge" -> Optional.of(a >= b);
      case "==", "Eq" -> Optional.of(a == b);
      case "!=", "Ne" -> Optional.of(a != b);
      default -> Optional.empty();
    };
  }

  static long apply(String operator, long a, long b) {
    return switch (operator) {
      case "+" -> Math.addExact(a, b);
      case "-" -> Math.subtractExact(a, b);
      case "*" -> Math.multiplyExact(a, b);
      case "/" -> exactQuotient(a, b);
      case "//" -> Math.floorDiv(a, b);
      case "%" -> Math.floorMod(a, b);
      case "**" -> power(a, b);
      default -> throw new IllegalArgumentException("sizes have no operator " + operator);
    };
  }

  /** {@return whether an expression has the symbol in it} */
  static boolean mentions(String text, String symbol) {
    for (int at = text.indexOf(symbol); at >= 0; at = text.indexOf(symbol, at + 1)) {
      int end = at + symbol.length();
      if ((at == 0 || !isWord(text.charAt(at - 1)))
          && (end == text.length() || !isWord(text.charAt(end)))) {
        return true;
      }
    }
    return false;
  }

  private static boolean isWord(char c) {
    return c == '_' || (c < 128 && Character.isLetterOrDigit(c));
  }

  private static long exactQuotient(long a, long b) {
    if (b == 0 || a % b != 0) {
      throw new ArithmeticException("%d / %d is not an integer".formatted(a, b));
    }
    return a / b;
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
    used.put(symbol, value);
    return value;
  }

  /** {@return the symbols that something was computed from, with their values} */
  ImmutableSortedMap<String, Long> used() {
    return ImmutableSortedMap.copyOf(used);
  }

  /** {@return whether a symbol has no value, only a bound that is taken for it} */
  boolean isBound(String symbol) {
    return !values.containsKey(symbol) && bounds.containsKey(symbol);
  }

  /** Recursive descent over one expression. */
  private final class Reader {
    private final String text;
    private int at;
    private int depth;

    Reader(String text) {
      this.text = text;
    }

    Arg all() {
      for (var name : COMPARISONS) {
        if (text.startsWith(name + "(")) {
          at = name.length() + 1;
          long left = sum();
          expect(",");
          long right = sum();
          expect(")");
          return end(new Arg.Bool(compare(name, left, right).orElseThrow()));
        }
      }
      long left = sum();
      for (var sign : SIGNS) {
        if (take(sign)) {
          return end(new Arg.Bool(compare(sign, left, sum()).orElseThrow()));
        }
      }
      return end(new Arg.Int(left));
    }

    private Arg end(Arg value) {
      skip();
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
        } else if (take("/")) {
          value = apply("/", value, power());
        } else if (take("%")) {
          value = apply("%", value, power());
        } else {
          return value;
        }
      }
    }

    /** A minus in front of a power is that of the result: {@code -s77**2} is not positive. */
    private long power() {
      boolean negative = false;
      while (take("-")) {
        negative = !negative;
      }
      long base = atom();
      long value = take("**") ? apply("**", base, atom()) : base;
      return negative ? Math.negateExact(value) : value;
    }

    private long atom() {
      if (take("(")) {
        long value = sum();
        expect(")");
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
      if (name.equals("Identity")) {
        expect(")");
        return value;
      }
      expect(",");
      do {
        long other = sum();
        value =
            switch (name) {
              case "Max" -> Math.max(value, other);
              case "Min" -> Math.min(value, other);
              case "FloorDiv" -> apply("//", value, other);
              case "CleanDiv", "IntTrueDiv" -> apply("/", value, other);
              case "Mod", "PythonMod" -> apply("%", value, other);
              default -> throw wrong();
            };
      } while (take(","));
      expect(")");
      return value;
    }

    private void expect(String sign) {
      if (!take(sign)) {
        throw wrong();
      }
    }
  }
}
