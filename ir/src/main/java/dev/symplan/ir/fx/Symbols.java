package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.Ints;
import dev.symplan.ir.Arg;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The values of symbolic sizes. {@code u0@1} is {@code u0} on rank 1, and counts there before
 * {@code u0}.
 */
final class Symbols {
  private static final char AT = '@';

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

  private final ImmutableMap<String, Long> values;
  private final ImmutableMap<String, Long> bounds;
  private final ImmutableIntArray ranks;
  private final SortedMap<String, Long> used = new TreeMap<>();

  /**
   * @param ranks those that the sizes are of; none for all
   */
  Symbols(
      ImmutableMap<String, Long> values,
      ImmutableMap<String, Long> bounds,
      ImmutableIntArray ranks) {
    this.values = values;
    this.bounds = bounds;
    this.ranks = ranks;
  }

  /** {@return the rank that a name is about, if it is about one} */
  static OptionalInt rankOf(String name) {
    int at = name.indexOf(AT);
    @Nullable Integer rank = at < 0 ? null : Ints.tryParse(name.substring(at + 1));
    return rank == null || rank < 0 ? OptionalInt.empty() : OptionalInt.of(rank);
  }

  /**
   * {@return the value of an expression: an integer, or whether a condition holds}
   *
   * @throws Unknown when a symbol in it has no value
   * @throws IllegalArgumentException when it is malformed or overflows
   */
  Arg constant(SizeExpr expr) {
    try {
      return expr.evaluate(this::value);
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException("'%s': %s".formatted(expr.text(), e.getMessage()), e);
    }
  }

  /** {@return the value of an expression that is not a condition; throws as {@link #constant}} */
  long size(SizeExpr expr) {
    if (constant(expr) instanceof Arg.Int(long value)) {
      return value;
    }
    throw new IllegalArgumentException("not a size: '" + expr.text() + "'");
  }

  private long value(String symbol) {
    if (ranks.length() == 1) {
      var own = symbol + AT + ranks.get(0);
      if (isKnown(own)) {
        return known(own);
      }
    }
    if (!isKnown(symbol)) {
      throw new Unknown(symbol);
    }
    return known(symbol);
  }

  private boolean isKnown(String name) {
    return values.containsKey(name) || bounds.containsKey(name);
  }

  private long known(String name) {
    long value = Objects.requireNonNull(values.getOrDefault(name, bounds.get(name)));
    used.put(name, value);
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
}
