package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSortedMap;
import dev.symplan.ir.Arg;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** The values of symbolic sizes. */
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

  private final ImmutableMap<String, Long> values;
  private final ImmutableMap<String, Long> bounds;
  private final SortedMap<String, Long> used = new TreeMap<>();

  Symbols(ImmutableMap<String, Long> values, ImmutableMap<String, Long> bounds) {
    this.values = values;
    this.bounds = bounds;
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
    throw new IllegalArgumentException("no size is written '" + expr.text() + "'");
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
}
