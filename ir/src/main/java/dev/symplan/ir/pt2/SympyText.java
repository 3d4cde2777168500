package dev.symplan.ir.pt2;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Turns what sympy's {@code srepr} prints, {@code Mul(Integer(4), Symbol('s77', integer=True))},
 * into what its {@code str} prints, {@code 4*s77}, as FX texts have it.
 */
final class SympyText {
  private static final int MAX_DEPTH = 100;
  private static final int MAX_LENGTH = 1 << 16;

  private static final ImmutableMap<String, String> RELATIONS =
      ImmutableMap.of(
          "Equality", "==",
          "Unequality", "!=",
          "StrictLessThan", "<",
          "LessThan", "<=",
          "StrictGreaterThan", ">",
          "GreaterThan", ">=");

  /** How tightly the outermost operator of a text binds. */
  private enum Binding {
    RELATION,
    SUM,
    PRODUCT,
    ATOM
  }

  /**
   * A part of the expression.
   *
   * @param text without its divisor
   * @param divisor 1 where it is not divided
   */
  private record Term(String text, Binding binding, String divisor) {
    static Term atom(String text) {
      return new Term(text, Binding.ATOM, "1");
    }

    String whole() {
      return divisor.equals("1") ? text : in(Binding.PRODUCT) + "/" + divisor;
    }

    String in(Binding context) {
      return binding.compareTo(context) < 0 ? "(" + text + ")" : text;
    }

    String wholeIn(Binding context) {
      return divisor.equals("1")
          ? in(context)
          : new Term(whole(), Binding.PRODUCT, "1").in(context);
    }
  }

  private final String source;
  private int at;
  private int depth;

  private SympyText(String source) {
    this.source = source;
  }

  /**
   * {@return the expression in infix form}
   *
   * @throws IllegalArgumentException when the text is no such expression
   */
  static String of(String srepr) {
    if (srepr.length() > MAX_LENGTH) {
      throw new IllegalArgumentException("the expression is too long");
    }
    var reader = new SympyText(srepr);
    var term = reader.term();
    reader.skip();
    if (reader.at < srepr.length()) {
      throw reader.wrong();
    }
    return term.whole();
  }

  private IllegalArgumentException wrong() {
    return new IllegalArgumentException("no expression is written '%s'".formatted(source));
  }

  private void skip() {
    while (at < source.length() && source.charAt(at) == ' ') {
      at++;
    }
  }

  private boolean take(char sign) {
    skip();
    if (at < source.length() && source.charAt(at) == sign) {
      at++;
      return true;
    }
    return false;
  }

  private String word() {
    skip();
    int start = at;
    while (at < source.length() && isWord(source.charAt(at))) {
      at++;
    }
    if (start == at) {
      throw wrong();
    }
    return source.substring(start, at);
  }

  private static boolean isWord(char c) {
    return c < 128 && (Character.isLetterOrDigit(c) || c == '_' || c == '.');
  }

  private Term term() {
    if (++depth > MAX_DEPTH) {
      throw new IllegalArgumentException("the expression is nested too deeply");
    }
    var result = take('\'') ? Term.atom(quoted()) : signed();
    depth--;
    return result;
  }

  private String quoted() {
    int end = source.indexOf('\'', at);
    if (end < 0) {
      throw wrong();
    }
    var text = source.substring(at, end);
    at = end + 1;
    for (int i = 0; i < text.length(); i++) {
      if (!isWord(text.charAt(i))) {
        throw wrong();
      }
    }
    return text;
  }

  private Term signed() {
    if (take('-')) {
      return new Term("-" + word(), Binding.PRODUCT, "1");
    }
    var word = word();
    if (!take('(')) {
      return Term.atom(
          switch (word) {
            case "true" -> "True";
            case "false" -> "False";
            default -> word;
          });
    }
    return apply(word, args());
  }

  /** Behind the opening parenthesis; {@code key=value}, which describe symbols, are left out. */
  private List<Term> args() {
    var args = new ArrayList<Term>();
    if (take(')')) {
      return args;
    }
    do {
      var arg = term();
      if (take('=')) {
        term();
      } else {
        args.add(arg);
      }
    } while (take(','));
    if (!take(')')) {
      throw wrong();
    }
    return args;
  }

  private Term apply(String name, List<Term> args) {
    @Nullable String relation = RELATIONS.get(name);
    if (relation != null && args.size() == 2) {
      return new Term(
          "%s %s %s"
              .formatted(
                  args.getFirst().wholeIn(Binding.SUM), relation, args.get(1).wholeIn(Binding.SUM)),
          Binding.RELATION,
          "1");
    }
    return switch (name) {
      case "Symbol", "Integer", "Float", "Identity" -> first(args);
      case "Rational" -> new Term(first(args).text, first(args).binding, second(args).text);
      case "Add" -> sum(args);
      case "Mul" -> product(args);
      case "Pow", "PowByNatural" ->
          new Term(
              first(args).wholeIn(Binding.ATOM) + "**" + second(args).wholeIn(Binding.ATOM),
              Binding.PRODUCT,
              "1");
      case "floor" ->
          Term.atom("FloorDiv(%s, %s)".formatted(first(args).text, first(args).divisor));
      case "ModularIndexing" ->
          args.size() == 3
              ? call("Mod", List.of(call("FloorDiv", args.subList(0, 2)), args.get(2)))
              : call(name, args);
      default -> call(name, args);
    };
  }

  private Term first(List<Term> args) {
    if (args.isEmpty()) {
      throw wrong();
    }
    return args.getFirst();
  }

  private Term second(List<Term> args) {
    if (args.size() != 2) {
      throw wrong();
    }
    return args.get(1);
  }

  private static Term call(String name, List<Term> args) {
    return Term.atom(name + "(" + String.join(", ", args.stream().map(Term::whole).toList()) + ")");
  }

  private Term sum(List<Term> args) {
    first(args);
    return new Term(
        String.join(" + ", args.stream().map(arg -> arg.wholeIn(Binding.SUM)).toList()),
        Binding.SUM,
        "1");
  }

  /** Divided last, and once: {@code 1/2*s} must not be computed from the left. */
  private Term product(List<Term> args) {
    var factors = ImmutableList.<String>builder();
    var divisors = new ArrayList<String>();
    for (var arg : args) {
      if (!arg.divisor.equals("1")) {
        divisors.add(arg.divisor);
      }
      if (!arg.text.equals("1")) {
        factors.add(arg.in(Binding.PRODUCT));
      }
    }
    first(args);
    var text = String.join("*", factors.build());
    return new Term(
        text.isEmpty() ? "1" : text,
        Binding.PRODUCT,
        divisors.isEmpty()
            ? "1"
            : divisors.size() == 1 ? divisors.getFirst() : "(" + String.join("*", divisors) + ")");
  }
}
