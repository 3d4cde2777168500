package dev.symplan.planner.pack;

import java.util.List;
import java.util.stream.IntStream;

/**
 * Runs {@link Search} with several branching rules and orders, each for a few steps, then for more:
 * search times vary by orders of magnitude with the order, and one of several short runs nearly
 * always ends soon.
 */
final class SearchPortfolio {
  static final int MAX_ITEMS = 2000;
  private static final long MAX_MEMBERS = 400_000;
  private static final long FIRST_STEPS = 500;
  private static final int GROWTH = 4;

  /** A step takes longer where items live longer; so many sections of items count as one. */
  private static final int MEMBERS_PER_STEP = 5_000;

  private static final List<Search.Branching> BRANCHINGS =
      List.of(
          Search.Branching.FEWEST_CHOICES,
          Search.Branching.LOWEST,
          Search.Branching.FEWEST_CHOICES_BY_FAILURES);

  private final Items items;
  private final long[] pins;
  private final Gap gap;
  private final List<int[]> orders;
  private final long target;
  private final long unit;
  private long stepsLeft;
  private long best;
  private long lowerBound;
  private long[] offsets = {};

  /**
   * @param pins the offsets of items that are not to be moved, {@link Search#FREE} for the others
   * @param best the height reached so far
   * @param target the height at which to stop
   * @param steps what may be used
   */
  SearchPortfolio(Items items, long[] pins, Gap gap, long best, long target, long steps) {
    this.items = items;
    this.pins = pins;
    this.gap = gap;
    this.best = best;
    this.target = target;
    var all = new Orders(items, items.live());
    orders = IntStream.range(0, Orders.COUNT).mapToObj(all::get).toList();
    stepsLeft = steps;
    long divisor = gap.end();
    for (int i = 0; i < items.count; i++) {
      divisor = gcd(divisor, gcd(items.size[i], items.alignment[i]));
      divisor = pins[i] == Search.FREE ? divisor : gcd(divisor, pins[i]);
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

  private static long gcd(long a, long b) {
    long x = a;
    long y = b;
    while (y != 0) {
      long rest = x % y;
      x = y;
      y = rest;
    }
    return x;
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
    long weight = weight(items);
    long left = allowed;
    for (long steps = FIRST_STEPS; left > 0; steps *= GROWTH) {
      for (var branching : BRANCHINGS) {
        for (var order : orders) {
          long run = Math.min(steps, Math.max(1, left / weight));
          var outcome = search.run(order, branching, run);
          long used = (run - search.stepsLeft()) * weight;
          left -= used;
          stepsLeft -= used;
          switch (outcome) {
            case FOUND -> {
              offsets = search.offsets();
              best = items.height(offsets);
              return outcome;
            }
            case IMPOSSIBLE -> {
              lowerBound = Math.max(lowerBound, capacity + unit);
              return outcome;
            }
            case UNKNOWN -> {
              if (left <= 0) {
                return outcome;
              }
            }
          }
        }
      }
    }
    return Search.Outcome.UNKNOWN;
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
