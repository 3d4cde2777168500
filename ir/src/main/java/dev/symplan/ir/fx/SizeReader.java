package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.Longs;
import dev.symplan.ir.fx.SizeExpr.Binary;
import dev.symplan.ir.fx.SizeExpr.Operator;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Reads sizes in both forms that sympy prints: {@code str}, as in {@code 4*s77}, with {@code + - *
 * / // % **}, parentheses, functions and comparisons; and {@code srepr}, as in {@code
 * Mul(Integer(4), Symbol('s77', integer=True))}.
 */
public final class SizeReader {
  private static final int MAX_LENGTH = 1 << 17;
  private static final int MAX_DEPTH = 100;
  private static final int MAX_OPERATORS = 1000;

  /** The longer ones first: {@code <} begins {@code <=}. */
  private static final ImmutableList<String> RELATIONS =
      ImmutableList.of("<=", ">=", "==", "!=", "<", ">");

  private static final ImmutableList<String> PRODUCTS = ImmutableList.of("*", "//", "/", "%");

  private final String text;
  private int at;
  private int depth;
  private int operators;

  private SizeReader(String text) {
    this.text = text;
  }

  /**
   * {@return the expression}
   *
   * @throws IllegalArgumentException when the text is not one
   */
  public static SizeExpr read(String text) {
    if (text.length() > MAX_LENGTH) {
      throw new IllegalArgumentException("the expression is too long");
    }
    var reader = new SizeReader(text);
    var expr = reader.sum();
    for (var sign : RELATIONS) {
      if (reader.take(sign)) {
        expr = reader.join(Operator.ofSign(sign), expr, reader.sum());
        break;
      }
    }
    reader.skip();
    if (reader.at < text.length()) {
      throw reader.wrong();
    }
    return expr;
  }

  private IllegalArgumentException wrong() {
    return new IllegalArgumentException("'%s' is not a size".formatted(text));
  }

  private void skip() {
    while (at < text.length() && text.charAt(at) == ' ') {
      at++;
    }
  }

  private boolean take(String sign) {
    skip();
    if (text.startsWith(sign, at)) {
      at += sign.length();
      return true;
    }
    return false;
  }

  private void expect(String sign) {
    if (!take(sign)) {
      throw wrong();
    }
  }

  private SizeExpr join(Operator operator, SizeExpr left, SizeExpr right) {
    if (++operators > MAX_OPERATORS) {
      throw new IllegalArgumentException("the expression is too long");
    }
    return new Binary(operator, left, right);
  }

  private SizeExpr fold(Operator operator, List<SizeExpr> args) {
    return args.stream().reduce((left, right) -> join(operator, left, right)).orElseThrow();
  }

  private SizeExpr sum() {
    if (++depth > MAX_DEPTH) {
      throw new IllegalArgumentException("the expression is nested too deeply");
    }
    var expr = product();
    while (true) {
      if (take("+")) {
        expr = join(Operator.ADD, expr, product());
      } else if (take("-")) {
        expr = join(Operator.SUBTRACT, expr, product());
      } else {
        depth--;
        return expr;
      }
    }
  }

  private SizeExpr product() {
    var expr = power();
    while (true) {
      var sign = PRODUCTS.stream().filter(this::take).findFirst();
      if (sign.isEmpty()) {
        return expr;
      }
      expr = join(Operator.ofSign(sign.get()), expr, power());
    }
  }

  /** A minus in front of a power is that of the result: {@code -s77**2} is not positive. */
  private SizeExpr power() {
    boolean negative = false;
    while (take("-")) {
      negative = !negative;
    }
    var base = atom();
    var expr = take("**") ? join(Operator.POWER, base, atom()) : base;
    if (!negative) {
      return expr;
    }
    return expr instanceof SizeExpr.Int(long value)
        ? new SizeExpr.Int(-value)
        : new SizeExpr.Negative(expr);
  }

  private SizeExpr atom() {
    if (take("(")) {
      var expr = sum();
      expect(")");
      return expr;
    }
    if (take("'")) {
      var quoted = word(true);
      expect("'");
      return literal(quoted);
    }
    skip();
    var word = word(false);
    return take("(") ? function(word, args()) : literal(word);
  }

  private String word(boolean dots) {
    int start = at;
    while (at < text.length() && (isWord(text.charAt(at)) || (dots && text.charAt(at) == '.'))) {
      at++;
    }
    if (start == at) {
      throw wrong();
    }
    return text.substring(start, at);
  }

  private static boolean isWord(char c) {
    return c == '_' || (c < 128 && Character.isLetterOrDigit(c));
  }

  private SizeExpr literal(String word) {
    if (Character.isDigit(word.charAt(0))) {
      @Nullable Long value = Longs.tryParse(word);
      return value == null ? new SizeExpr.Malformed(word) : new SizeExpr.Int(value);
    }
    return switch (word) {
      case "True", "true" -> new SizeExpr.Bool(true);
      case "False", "false" -> new SizeExpr.Bool(false);
      default -> new SizeExpr.Symbol(word);
    };
  }

  /** After the opening parenthesis; {@code key=value}, which describe symbols, are left out. */
  private List<SizeExpr> args() {
    var args = new ArrayList<SizeExpr>();
    do {
      var arg = sum();
      if (take("=")) {
        sum();
      } else {
        args.add(arg);
      }
    } while (take(","));
    expect(")");
    return args;
  }

  private SizeExpr function(String name, List<SizeExpr> args) {
    if (args.isEmpty()) {
      throw wrong();
    }
    var first = args.getFirst();
    return switch (name) {
      case "Symbol", "Integer", "Float", "Identity" -> first;
      case "Rational" -> join(Operator.DIVIDE, first, second(args));
      case "Add" -> fold(Operator.ADD, args);
      case "Mul" -> quotient(args);
      case "Pow", "PowByNatural" -> join(Operator.POWER, first, second(args));
      case "floor" ->
          first instanceof Binary(Operator operator, SizeExpr left, SizeExpr right)
                  && operator == Operator.DIVIDE
              ? join(Operator.FLOOR_DIVIDE, left, right)
              : first;
      case "ModularIndexing" -> modularIndexing(args);
      default ->
          Operator.ofFunction(name)
              .filter(operator -> args.size() == 2 || (args.size() > 2 && !operator.compares()))
              .map(operator -> fold(operator, args))
              .orElseGet(() -> unknown(name, args));
    };
  }

  private SizeExpr second(List<SizeExpr> args) {
    if (args.size() != 2) {
      throw wrong();
    }
    return args.get(1);
  }

  /** {@code (base // divisor) % modulus} */
  private SizeExpr modularIndexing(List<SizeExpr> args) {
    if (args.size() != 3) {
      throw wrong();
    }
    var quotient = join(Operator.FLOOR_DIVIDE, args.getFirst(), args.get(1));
    return join(Operator.MODULO, quotient, args.get(2));
  }

  private static SizeExpr unknown(String name, List<SizeExpr> args) {
    return new SizeExpr.Malformed(
        args.stream().map(SizeExpr::text).collect(Collectors.joining(", ", name + "(", ")")));
  }

  /** Divided last, and once: {@code 1/2*s} must not be computed from the left. */
  private SizeExpr quotient(List<SizeExpr> args) {
    var factors = new ArrayList<SizeExpr>();
    var divisors = new ArrayList<SizeExpr>();
    for (var arg : args) {
      if (arg instanceof Binary(Operator operator, SizeExpr left, SizeExpr right)
          && operator == Operator.DIVIDE) {
        factors.add(left);
        divisors.add(right);
      } else {
        factors.add(arg);
      }
    }
    factors.removeIf(new SizeExpr.Int(1)::equals);
    var product = factors.isEmpty() ? new SizeExpr.Int(1) : fold(Operator.MULTIPLY, factors);
    return divisors.isEmpty()
        ? product
        : join(Operator.DIVIDE, product, fold(Operator.MULTIPLY, divisors));
  }
}
