package dev.symplan.planner.pass.analysis;

import dev.symplan.ir.TensorType;
import java.util.ArrayList;
import java.util.function.DoubleBinaryOperator;
import java.util.function.DoubleUnaryOperator;
import java.util.function.IntToDoubleFunction;

/** Makes rows from rows, run by run. */
final class RowFunctions {

  private RowFunctions() {}

  static RowFunction constant(TensorType type, double value) {
    var row = Runs.of(ConstantOps.lastSize(type), value);
    return _ -> row;
  }

  /** Makes elements from those of a run. */
  @FunctionalInterface
  interface OfRun {
    void make(Runs.Builder made, int count, double first, double step);
  }

  static RowFunction made(RowFunction rows, OfRun function) {
    return row -> {
      var made = new Runs.Builder();
      rows.row(row).forEach((count, first, step) -> function.make(made, count, first, step));
      return made.build();
    };
  }

  static OfRun each(DoubleUnaryOperator function) {
    return (made, count, first, step) -> {
      if (step == 0) {
        made.add(count, function.applyAsDouble(first), 0);
      } else {
        for (int i = 0; i < count; i++) {
          made.add(1, function.applyAsDouble(first + i * step), 0);
        }
      }
    };
  }

  /** Makes elements from those of two runs. */
  @FunctionalInterface
  interface OfRuns {
    void make(
        Runs.Builder made,
        int count,
        double first,
        double step,
        double otherFirst,
        double otherStep);
  }

  static RowFunction joint(RowFunction left, RowFunction right, OfRuns function) {
    return row -> {
      var made = new Runs.Builder();
      left.row(row)
          .forEach(
              right.row(row),
              (count, a, by, b, otherBy) -> function.make(made, count, a, by, b, otherBy));
      return made.build();
    };
  }

  /** Each element by itself, or one for all that are the same. */
  static OfRuns each(DoubleBinaryOperator function) {
    return (made, count, a, by, b, otherBy) -> {
      if (by == 0 && otherBy == 0) {
        made.add(count, function.applyAsDouble(a, b), 0);
      } else {
        for (int i = 0; i < count; i++) {
          made.add(1, function.applyAsDouble(a + i * by, b + i * otherBy), 0);
        }
      }
    };
  }

  static double upTo(double max, double value) {
    if (Math.abs(value) <= max) {
      return value;
    }
    throw new UnknownElements();
  }

  static void checkUpTo(double max, int count, double first, double step) {
    upTo(max, first);
    upTo(max, first + (count - 1) * step);
  }

  /**
   * Of two runs, one is greater from some element on, and they are equal before that at most once.
   */
  static void compare(
      Runs.Builder made,
      int count,
      double first,
      double step,
      double otherFirst,
      double otherStep,
      int holds) {
    checkUpTo(Runs.MAX_EXACT, count, first, step);
    checkUpTo(Runs.MAX_EXACT, count, otherFirst, otherStep);
    // The difference is rounded, but its sign is exact.
    IntToDoubleFunction difference = i -> first + i * step - (otherFirst + i * otherStep);
    int at = 0;
    while (at < count) {
      double sign = Math.signum(difference.applyAsDouble(at));
      int end = endOf(sign, difference, at, count);
      made.add(end - at, holds >> (1 + (int) sign) & 1, 0);
      at = end;
    }
  }

  /** {@return up to where the sign of what only rises, or only falls, is the same} */
  private static int endOf(double sign, IntToDoubleFunction values, int begin, int count) {
    int same = begin;
    int end = count;
    while (end - same > 1) {
      int middle = (same + end) >>> 1;
      if (Math.signum(values.applyAsDouble(middle)) == sign) {
        same = middle;
      } else {
        end = middle;
      }
    }
    return end;
  }

  static RowFunction chosen(RowFunction condition, RowFunction yes, RowFunction no) {
    return row -> {
      var whether = condition.row(row);
      var these = yes.row(row);
      var those = no.row(row);
      var parts = new ArrayList<Runs>();
      whether.forEach(
          new Runs.Visitor() {
            private int at = 0;

            @Override
            public void see(int count, double first, double step) {
              if (step != 0) {
                throw new UnknownElements();
              }
              parts.add((first == 0 ? those : these).slice(at, 1, count));
              at += count;
            }
          });
      return Runs.join(parts);
    };
  }
}
