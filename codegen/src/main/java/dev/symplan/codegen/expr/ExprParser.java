package dev.symplan.codegen.expr;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.expr.Primitive.Comparison;
import dev.symplan.codegen.expr.Primitive.FloatFunction;
import dev.symplan.codegen.expr.Primitive.Fold;
import dev.symplan.codegen.expr.Primitive.Infix;
import dev.symplan.codegen.expr.Primitive.Known;
import dev.symplan.codegen.expr.Primitive.Operator;
import dev.symplan.codegen.expr.Primitive.Scan;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Reads expressions, which are written as in C. */
final class ExprParser {

  /**
   * A function that is defined by an expression, and replaced by it.
   *
   * @param params the names in {@code body} that arguments replace
   */
  record Macro(ImmutableList<String> params, Expr body) {}

  private static final Pattern TOKEN =
      Pattern.compile(
          "\\s*([0-9][0-9.]*(?:e[+-]?[0-9]+)?|[A-Za-z_]\\w*|\"\\w*\"|\\|\\||&&|<<|>>|[=!<>]=|\\S)");

  private static final ImmutableMap<String, Primitive> FUNCTIONS =
      index(
          Primitive.Function.values(),
          FloatFunction.values(),
          Fold.values(),
          Scan.values(),
          Known.values());

  private static final ImmutableMap<String, Infix> OPERATORS =
      index(Operator.values(), Comparison.values());

  @SafeVarargs
  private static <P extends Primitive> ImmutableMap<String, P> index(P[]... kinds) {
    return Stream.of(kinds)
        .flatMap(Stream::of)
        .collect(ImmutableMap.toImmutableMap(Primitive::symbol, primitive -> primitive));
  }

  private final String text;
  private final Function<String, Optional<Macro>> macros;
  private final List<String> tokens = new ArrayList<>();
  private int at;

  private ExprParser(String text, Function<String, Optional<Macro>> macros) {
    this.text = text;
    this.macros = macros;
    var matcher = TOKEN.matcher(text);
    while (matcher.find()) {
      tokens.add(matcher.group(1));
    }
    tokens.add("");
  }

  /**
   * {@return the expressions of a text, between which there are semicolons}
   *
   * @param macros finds functions that are not primitives
   * @throws IllegalArgumentException when the text is not such a list
   */
  static ImmutableList<Expr> parse(String text, Function<String, Optional<Macro>> macros) {
    var parser = new ExprParser(text, macros);
    var exprs = ImmutableList.<Expr>builder();
    do {
      exprs.add(parser.ternary());
    } while (parser.take(";"));
    parser.expect("");
    return exprs.build();
  }

  private boolean take(String token) {
    boolean is = tokens.get(at).equals(token);
    at += is ? 1 : 0;
    return is;
  }

  private void expect(String token) {
    if (!take(token)) {
      throw new IllegalArgumentException(
          "'%s' expected, not '%s', in: %s".formatted(token, tokens.get(at), text));
    }
  }

  private Expr ternary() {
    var condition = binary(1);
    if (!take("?")) {
      return condition;
    }
    var then = ternary();
    expect(":");
    return Expr.of(Primitive.Function.SELECT, condition, then, ternary());
  }

  private Expr binary(int least) {
    var left = unary();
    while (true) {
      @Nullable Infix operator = OPERATORS.get(tokens.get(at));
      if (operator == null || operator.precedence() < least) {
        return left;
      }
      at++;
      left = Expr.of(operator, left, binary(operator.precedence() + 1));
    }
  }

  private Expr unary() {
    if (take("-")) {
      return Expr.of(Primitive.Function.NEG, unary());
    } else if (take("!")) {
      return Expr.of(Primitive.Function.NOT, unary());
    } else if (take("~")) {
      return Expr.of(Primitive.Function.BIT_NOT, unary());
    } else if (take("(")) {
      var inside = ternary();
      expect(")");
      return inside;
    }
    var token = tokens.get(at++);
    if (token.startsWith("\"")) {
      return new Expr.Text(token.substring(1, token.length() - 1));
    } else if (!token.isEmpty() && Character.isDigit(token.charAt(0))) {
      return token.matches("\\d+")
          ? new Expr.Int(Long.parseLong(token))
          : new Expr.Float(Double.parseDouble(token));
    } else if (token.isEmpty() || !Character.isJavaIdentifierStart(token.charAt(0))) {
      throw new IllegalArgumentException("'%s' is not a value, in: %s".formatted(token, text));
    }
    return take("(") ? call(token, args()) : new Expr.Param(token);
  }

  private ImmutableList<Expr> args() {
    var args = ImmutableList.<Expr>builder();
    if (take(")")) {
      return args.build();
    }
    do {
      args.add(ternary());
    } while (take(","));
    expect(")");
    return args.build();
  }

  private Expr call(String name, ImmutableList<Expr> args) {
    var macro = macros.apply(name);
    if (macro.isPresent()) {
      var values = ImmutableMap.<String, Expr>builder();
      for (int i = 0; i < args.size(); i++) {
        values.put(macro.get().params().get(i), args.get(i));
      }
      return macro.get().body().with(values.buildOrThrow());
    }
    @Nullable Primitive function = FUNCTIONS.get(name);
    if (function == null) {
      throw new IllegalArgumentException("no function '%s': %s".formatted(name, text));
    }
    return new Expr.Apply(function, args);
  }
}
