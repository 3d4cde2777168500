package dev.symplan.codegen.expr;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.io.Resources;
import dev.symplan.codegen.expr.ExprParser.Macro;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The ops that are defined by expressions, in {@code expressions.txt}. Thread-safe; each is parsed
 * when it is first looked for.
 */
public final class Expressions {
  private static final Splitter WORDS = Splitter.on(' ').omitEmptyStrings();
  private static final Splitter COLUMNS = Splitter.on(" = ").limit(2);
  private static final String MACRO = "let ";
  private static final String COMPOSITE = "composite ";
  private static final String COMPLEX = "complex ";
  private static final ImmutableList<String> KINDS = ImmutableList.of(MACRO, COMPOSITE, COMPLEX);

  /**
   * The texts of ops by full name; those of composites, of complex numbers and of macros begin with
   * their kind.
   */
  private static final ImmutableMap<String, String> TEXTS = read();

  private static final Map<String, ImmutableList<Expr>> PARSED = new ConcurrentHashMap<>();
  private static final Map<String, Optional<Macro>> MACROS = new ConcurrentHashMap<>();

  private Expressions() {}

  /** {@return the full names of the ops that are defined so} */
  public static ImmutableSet<String> names() {
    return TEXTS.keySet().stream()
        .filter(name -> KINDS.stream().noneMatch(name::startsWith))
        .collect(ImmutableSet.toImmutableSet());
  }

  /** {@return the results of an op, by its full name, in the order of its results} */
  public static Optional<ImmutableList<Expr>> find(String op) {
    return TEXTS.containsKey(op)
        ? Optional.of(PARSED.computeIfAbsent(op, _ -> parse(text(op))))
        : Optional.empty();
  }

  /**
   * {@return the results of an op that is defined so, by its full name}
   *
   * @throws java.util.NoSuchElementException when it is not
   */
  public static ImmutableList<Expr> get(String op) {
    return find(op).orElseThrow();
  }

  /**
   * {@return the values that the steps of a composite op compute}
   *
   * @throws java.util.NoSuchElementException when it is not defined so
   */
  public static ImmutableList<Expr> ofComposite(String op) {
    return get(COMPOSITE + op);
  }

  /** {@return the full names of the ops with values that {@link #ofComposite} gives} */
  public static ImmutableSet<String> composites() {
    return ofKind(COMPOSITE);
  }

  /**
   * {@return the parts of an op's result, or its only value if that is real, of the parts of
   * operands: {@code NAME_re} and {@code NAME_im}}
   *
   * @throws java.util.NoSuchElementException when it is not defined for complex numbers
   */
  public static ImmutableList<Expr> ofComplex(String op) {
    return get(COMPLEX + op);
  }

  /** {@return the full names of the ops that are defined for complex numbers} */
  public static ImmutableSet<String> complexOps() {
    return ofKind(COMPLEX);
  }

  private static ImmutableSet<String> ofKind(String kind) {
    return TEXTS.keySet().stream()
        .filter(name -> name.startsWith(kind))
        .map(name -> name.substring(kind.length()))
        .collect(ImmutableSet.toImmutableSet());
  }

  /** {@return whether an op that is defined so is of rows, rather than of elements} */
  public static boolean isByRow(String op) {
    return get(op).stream().anyMatch(Binding::isByRow);
  }

  /**
   * {@return the expression of a text that does not belong to an op}
   *
   * @throws IllegalArgumentException when the text is not an expression
   */
  public static ImmutableList<Expr> parse(String text) {
    return ExprParser.parse(text, Expressions::macro);
  }

  private static String text(String key) {
    return Optional.ofNullable(TEXTS.get(key)).orElseThrow();
  }

  private static Optional<Macro> macro(String name) {
    var known = MACROS.get(name);
    if (known == null) {
      // Macros use others: parsed outside of the map, which must not be changed meanwhile.
      known = Optional.ofNullable(TEXTS.get(MACRO + name)).map(Expressions::macroOf);
      MACROS.put(name, known);
    }
    return known;
  }

  private static Macro macroOf(String text) {
    int close = text.indexOf(')');
    return new Macro(
        ImmutableList.copyOf(
            Splitter.on(',').trimResults().omitEmptyStrings().split(text.substring(1, close))),
        parse(text.substring(text.indexOf('=') + 1)).getFirst());
  }

  private static ImmutableMap<String, String> read() {
    String all;
    try {
      all =
          Resources.toString(
              Resources.getResource(Expressions.class, "expressions.txt"), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    var texts = ImmutableMap.<String, String>builder();
    // A line that begins with a space goes on with the one before.
    all.replaceAll("\\n +", " ")
        .lines()
        .filter(line -> !line.isBlank() && !line.startsWith("#"))
        .forEach(
            line -> {
              if (line.startsWith(MACRO)) {
                int open = line.indexOf('(');
                texts.put(line.substring(0, open), line.substring(open));
                return;
              }
              var kind = KINDS.stream().filter(line::startsWith).findFirst().orElse("");
              var columns = COLUMNS.splitToList(line.substring(kind.length()));
              for (var name : WORDS.split(columns.getFirst())) {
                var full = name.contains("::") ? name : "aten::" + name;
                texts.put(kind + full, columns.getLast());
              }
            });
    return texts.buildOrThrow();
  }
}
