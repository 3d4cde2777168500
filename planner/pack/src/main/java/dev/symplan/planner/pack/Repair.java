package dev.symplan.planner.pack;

import java.util.Arrays;
import java.util.BitSet;
import java.util.function.BooleanSupplier;

/**
 * Lowers a packing where it is too high: takes out what lives around an item that stands out, and
 * searches for another packing of that, around everything that also lives elsewhere.
 */
final class Repair {
  /** How far a window reaches beyond the item, in sections. */
  private static final int[] REACHES = {6, 16, 40, 100, 250};

  private static final long STEPS_PER_WINDOW = 2_000;

  /** The steps that a look at the items of a window counts as. */
  private static final long STEPS_TO_LOOK = 50;

  /** How often the goal for one item is moved halfway to where the item is. */
  private static final int COMPROMISES = 3;

  private final Items items;
  private final LifetimeTree tree;
  private final long[] offsets;
  private final BitSet immovable;
  private final Gap gap;
  private final BooleanSupplier stop;
  private long stepsLeft;

  /**
   * @param offsets the packing, which is changed
   * @param immovable items that must stay where they are
   * @param steps the steps that search may use
   * @param stop asked again and again whether to end
   */
  Repair(Items items, long[] offsets, BitSet immovable, Gap gap, long steps, BooleanSupplier stop) {
    this.items = items;
    this.offsets = offsets;
    this.immovable = immovable;
    this.gap = gap;
    tree = new LifetimeTree(items.first, items.end);
    stepsLeft = steps;
    this.stop = stop;
  }

  /** Brings items down to a height, or as low as is found. */
  void lower(long target) {
    long goal = target;
    var tops =
        IntSort.sorted(items.count, (a, b) -> Integer.compare(items.first[a], items.first[b]));
    for (int i : tops) {
      for (int k = 0; top(i) > goal; k++) {
        if (stepsLeft <= 0 || stop.getAsBoolean()) {
          return;
        }
        if (lower(i, goal)) {
          break;
        }
        goal = k < COMPROMISES ? goal + (top(i) - goal + 1) / 2 : top(i);
      }
    }
  }

  private long top(int item) {
    return offsets[item] + items.size[item];
  }

  private boolean lower(int item, long goal) {
    for (int reach : REACHES) {
      int from = Math.max(0, items.first[item] - reach);
      int to = Math.min(items.sections, items.end[item] + reach);
      var live = tree.touching(from, to, SearchPortfolio.MAX_ITEMS);
      stepsLeft -= STEPS_TO_LOOK;
      if (live.length > SearchPortfolio.MAX_ITEMS || stepsLeft <= 0) {
        return false;
      }
      var window = items.window(live, from, to);
      if (!SearchPortfolio.isSmallEnough(window)) {
        return false;
      }
      if (lower(live, window, from, to, goal)) {
        return true;
      }
    }
    return false;
  }

  private boolean lower(int[] live, Items window, int from, int to, long goal) {
    var pins = new long[live.length];
    Arrays.fill(pins, Search.FREE);
    for (int k = 0; k < live.length; k++) {
      int i = live[k];
      if (immovable.get(i) || items.first[i] < from || items.end[i] > to) {
        if (top(i) > goal) {
          return false;
        }
        pins[k] = offsets[i];
      }
    }
    long steps = Math.min(stepsLeft, STEPS_PER_WINDOW * SearchPortfolio.weight(window));
    var search = new SearchPortfolio(window, pins, gap, Long.MAX_VALUE, goal, steps, stop);
    search.solve(true);
    stepsLeft -= steps - search.stepsLeft();
    if (search.height() > goal) {
      return false;
    }
    for (int k = 0; k < live.length; k++) {
      offsets[live[k]] = search.offsets()[k];
    }
    return true;
  }

  long stepsLeft() {
    return Math.max(0, stepsLeft);
  }
}
