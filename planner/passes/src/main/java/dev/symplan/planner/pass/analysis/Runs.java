package dev.symplan.planner.pass.analysis;

import java.util.Arrays;
import java.util.List;

/**
 * A row of numbers, as runs of numbers that are a step apart, which is often 0. Masks, and the
 * positions that they compare, have few: to compute with a long row takes no longer than with a
 * short one.
 *
 * <p>Where steps are not 0, all numbers are integers of at most 2^53 in size, so each is exact.
 */
public final class Runs {

  /** The largest integer up to which a double holds all. */
  static final double MAX_EXACT = 1L << 53;

  /** By run, the number of elements up to its end, its first element and its step. */
  private final int[] ends;

  private final double[] firsts;
  private final double[] steps;

  private Runs(int[] ends, double[] firsts, double[] steps) {
    this.ends = ends;
    this.firsts = firsts;
    this.steps = steps;
  }

  /** {@return a row of one number} */
  static Runs of(int length, double value) {
    return counting(length, value, 0);
  }

  static Runs counting(int length, double first, double step) {
    return new Builder().add(length, first, step).build();
  }

  /** {@return rows one after the other} */
  static Runs join(List<Runs> rows) {
    var joined = new Builder();
    rows.forEach(row -> row.forEach(joined::add));
    return joined.build();
  }

  /** {@return the number of elements} */
  public int length() {
    return ends.length == 0 ? 0 : ends[ends.length - 1];
  }

  /** {@return the number of runs} */
  int count() {
    return ends.length;
  }

  /** {@return an element} */
  public double get(int index) {
    int run = runOf(index);
    return firsts[run] + (index - begin(run)) * steps[run];
  }

  private int begin(int run) {
    return run == 0 ? 0 : ends[run - 1];
  }

  /** {@return the run that has an element} */
  private int runOf(int index) {
    int found = Arrays.binarySearch(ends, index + 1);
    return found >= 0 ? found : -found - 1;
  }

  /** Sees the runs of a row in their order. */
  @FunctionalInterface
  interface Visitor {
    void see(int count, double first, double step);
  }

  void forEach(Visitor visitor) {
    for (int run = 0; run < ends.length; run++) {
      visitor.see(ends[run] - begin(run), firsts[run], steps[run]);
    }
  }

  /** Says whether a run is as wanted. */
  @FunctionalInterface
  public interface Condition {
    boolean holds(double first, double step);
  }

  /** {@return whether a condition holds for all runs of some part of the row} */
  public boolean all(int from, int to, Condition condition) {
    for (int at = from, run = from < to ? runOf(from) : 0; at < to; run++) {
      int end = Math.min(to, ends[run]);
      if (!condition.holds(firsts[run] + (at - begin(run)) * steps[run], steps[run])) {
        return false;
      }
      at = end;
    }
    return true;
  }

  /** {@return every {@code step}-th element of {@code count}, the first for a step of 0} */
  Runs slice(int from, int step, int count) {
    if (step == 0 || count <= 1) {
      return count == 0 ? of(0, 0) : of(count, get(from));
    }
    var slice = new Builder();
    int at = from;
    int left = count;
    for (int run = runOf(from); left > 0; run++) {
      if (at < ends[run]) {
        int taken = Math.min(left, (ends[run] - 1 - at) / step + 1);
        slice.add(taken, firsts[run] + (at - begin(run)) * steps[run], step * steps[run]);
        at += taken * step;
        left -= taken;
      }
    }
    return slice.build();
  }

  /** Makes elements from those of a run that each has of two rows. */
  @FunctionalInterface
  interface Joint {
    void see(int count, double first, double step, double otherFirst, double otherStep);
  }

  /** Sees two rows of one length in runs that are so in both. */
  void forEach(Runs other, Joint joint) {
    int at = 0;
    for (int run = 0, run2 = 0; run < ends.length; ) {
      int end = Math.min(ends[run], other.ends[run2]);
      joint.see(
          end - at,
          firsts[run] + (at - begin(run)) * steps[run],
          steps[run],
          other.firsts[run2] + (at - other.begin(run2)) * other.steps[run2],
          other.steps[run2]);
      at = end;
      run += end == ends[run] ? 1 : 0;
      run2 += end == other.ends[run2] ? 1 : 0;
    }
  }

  /** Adds elements at the end of a row. */
  static final class Builder {
    private int[] ends = new int[4];
    private double[] firsts = new double[4];
    private double[] steps = new double[4];
    private int runs;

    /**
     * Adds a run, or makes the last one longer.
     *
     * @throws UnknownElements if a step is not 0 and not all numbers are exact
     */
    Builder add(int count, double first, double step) {
      if (count == 0) {
        return this;
      }
      double by = count == 1 ? 0 : step;
      if (by != 0) {
        checkExact(first);
        checkExact((count - 1) * by);
        checkExact(first + (count - 1) * by);
      }
      int begin = runs == 0 ? 0 : ends[runs - 1];
      int end = Math.addExact(begin, count);
      if (runs > 0 && by == 0 && steps[runs - 1] == 0 && firsts[runs - 1] == first) {
        ends[runs - 1] = end;
        return this;
      }
      if (runs == ends.length) {
        ends = Arrays.copyOf(ends, 2 * runs);
        firsts = Arrays.copyOf(firsts, 2 * runs);
        steps = Arrays.copyOf(steps, 2 * runs);
      }
      ends[runs] = end;
      firsts[runs] = first;
      steps[runs] = by;
      runs++;
      return this;
    }

    private static void checkExact(double value) {
      if (value != Math.rint(value) || !(Math.abs(value) <= MAX_EXACT)) {
        throw new UnknownElements();
      }
    }

    Runs build() {
      return new Runs(
          Arrays.copyOf(ends, runs), Arrays.copyOf(firsts, runs), Arrays.copyOf(steps, runs));
    }
  }
}
