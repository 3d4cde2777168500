package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;

/**
 * The value of a row for programs, with a name that ends in its unit: {@code _bytes}, {@code _us}
 * (microseconds). {@code docs/report.md} lists the names.
 */
public sealed interface Fact {

  /** Words: a name, a code, a location in the source. */
  record Text(String value) implements Fact {}

  /** A count, an index or a number of bytes. */
  record Whole(long value) implements Fact {}

  /** A time or a share; never NaN, which JSON has no word for. */
  record Real(double value) implements Fact {
    public Real {
      if (Double.isNaN(value) || Double.isInfinite(value)) {
        throw new IllegalArgumentException("a fact is " + value);
      }
    }
  }

  /** Yes or no. */
  record Flag(boolean value) implements Fact {}

  /** Steps, ranks or ids, in order. */
  record Wholes(ImmutableIntArray values) implements Fact {}

  /** Names, in order. */
  record Texts(ImmutableList<String> values) implements Fact {}
}
