package dev.symplan.planner.pack;

import com.google.common.math.LongMath;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;

/**
 * Runs {@link Search} with several branching rules and orders, each for a few steps, then again and
 * again with {@link ShakenOrders}: search times vary by orders of magnitude with the order, and one
 * of several short runs nearly always ends soon.
 */
final class SearchPortfolio {
  static final int MAX_ITEMS = 2000;
  private static final long MAX_MEMBERS = 400_000;

  /** The length of the shortest runs. */
  private static final long UNIT = 500;

  /** A step takes longer where items live longer; so many sections of items count as one. */
  private static final int MEMBERS_PER_STEP = 5_000;

  private static final List<Search.Branching> BRANCHINGS =
      List.of(
          Search.Branching.FEWEST_CHOICES,
          Search.Branching.LOWEST,
          Search.Branching.FEWEST_CHOICES_BY_FAILURES);

  private static final List<Search.Branching> RESTARTED =
      List.of(Search.Branching.FEWEST_CHOICES, Search.Branching.FEWEST_CHOICES_BY_FAILURES);

  private final Items items;
  private final long[] pins;
  private final Gap gap;
  private final List<int[]> orders;
  private final long target;
  private final long unit;
  private final BooleanSupplier stop;
  private long stepsLeft;
  private long best;
  private long lowerBound;
  private long[] offsets = {};

  /**
   * @param pins the offsets of items that are not to be moved, {@link Search#FREE} for the others
   * @param best the height reached so far
   * @param target the height at which to stop
   * @param steps the steps that may be used
   * @param stop asked again and again whether to end
   */
  SearchPortfolio(
      Items items, long[] pins, Gap gap, long best, long target, long steps, BooleanSupplier stop) {
    this.items = items;
    this.pins = pins;
    this.gap = gap;
    this.best = best;
    this.target = target;
    var all = new Orders(items, items.live());
    orders = IntStream.range(0, Orders.COUNT).mapToObj(all::get).toList();
    stepsLeft = steps;
    this.stop = stop;
    long divisor = gap.end();
    for (int i = 0; i < items.count; i++) {
      divisor = LongMath.gcd(divisor, LongMath.gcd(items.size[i], items.alignment[i]));
      divisor = pins[i] == Search.FREE ? divisor : LongMath.gcd(divisor, pins[i]);
    }
    unit = divisor;
  }

  static boolean isSmallEnough(Items items) {
    return items.count <= MAX_ITEMS && members(items) <= MAX_MEMBERS;
  }

  /** {@return how many steps one state of a search counts as} */
  static long weight(Items items) {
    return 1 + members(items) / MEMBERS_PER_STEP;
  }

  private static long members(Items items) {
    long members = 0;
    for (int i = 0; i < items.count; i++) {
      members += items.end[i] - items.first[i];
    }
    return members;
  }

  /** Looks for a packing within the target; where that is not asked for alone, for a lower one. */
  void solve(boolean targetOnly) {
    long low = target;
    long steps = targetOnly ? stepsLeft : stepsLeft / 2;
    while (best > target) {
      long goal = low - low % unit;
      var outcome = search(goal, steps);
      if (targetOnly) {
        return;
      }
      if (outcome != Search.Outcome.FOUND) {
        low = goal + unit;
      }
      if (low >= best || stepsLeft <= 0) {
        return;
      }
      low = Math.max(low, low + (best - low) / 2);
      steps = Math.max(1, stepsLeft / 2);
    }
  }

  private Search.Outcome search(long capacity, long allowed) {
    var search = new Search(items, pins, gap, capacity);
    long limit = Math.max(0, stepsLeft - allowed);
    for (var branching : BRANCHINGS) {
      for (var order : orders) {
        var outcome = run(search, order, branching, UNIT, limit);
        if (outcome != Search.Outcome.UNKNOWN || stepsLeft <= limit) {
          return outcome;
        }
      }
    }
    var shaken = new ShakenOrders(items);
    for (long k = 1; ; k++) {
      // Each order with both branchings that choose where there is least choice.
      var order = shaken.next();
      for (var branching : RESTARTED) {
        var outcome = run(search, order, branching, UNIT * luby(k), limit);
        if (outcome != Search.Outcome.UNKNOWN || stepsLeft <= limit) {
          return outcome;
        }
      }
    }
  }

  private Search.Outcome run(
      Search search, int[] order, Search.Branching branching, long steps, long limit) {
    long weight = weight(items);
    long run = Math.min(steps, Math.max(1, (stepsLeft - limit) / weight));
    var outcome = search.run(order, branching, run, stop);
    stepsLeft -= Math.max(1, run - search.stepsLeft()) * weight;
    if (stop.getAsBoolean()) {
      stepsLeft = 0;
    }
    switch (outcome) {
      case FOUND -> {
        offsets = search.offsets();
        best = items.height(offsets);
      }
      case IMPOSSIBLE -> lowerBound = Math.max(lowerBound, search.capacity() + unit);
      case UNKNOWN -> {}
    }
    return outcome;
  }

  /**
   * {@return 1, 1, 2, 1, 1, 2, 4, …: lengths of runs that waste least where nothing is known of how
   * long a run must be (Luby, Sinclair and Zuckerman, 1993)}
   *
   * @param k from 1 on
   */
  static long luby(long k) {
    long rest = k;
    while (Long.bitCount(rest + 1) != 1) {
      rest -= Long.highestOneBit(rest) - 1;
    }
    return (rest + 1) / 2;
  }

  long stepsLeft() {
    return Math.max(0, stepsLeft);
  }

  long height() {
    return best;
  }

  long lowerBound() {
    return lowerBound;
  }

  long[] offsets() {
    return offsets;
  }
}
