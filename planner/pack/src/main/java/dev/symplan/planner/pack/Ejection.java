package dev.symplan.planner.pack;

import java.util.Arrays;
import java.util.BitSet;
import java.util.Random;
import java.util.function.BooleanSupplier;

/**
 * Lowers a packing of any number of items. What stands out above a goal is taken out and put in
 * again below it, where it meets least; what it meets there is taken out in turn, until nothing is
 * left outside. Only the items around a place are looked at, so that a step costs the same however
 * many items there are.
 *
 * <p>An item that found no free place meets with more resistance when another wants its place
 * later, so that the search does not run in circles. What was learned about one goal is kept for
 * the next. This is the guided ejection search of Nagata and Bräysy (2009, for vehicle routing),
 * with the effort to place an item instead of a constant.
 *
 * <p>The same for the same items everywhere: {@link Random} is specified to the bit, and so are the
 * operations used.
 */
final class Ejection {
  /** Looking at so many items takes about as long as one state of {@link Search}. */
  private static final int LOOKS_PER_STEP = 40;

  /** The fixed work of a move, in looks. */
  private static final int LOOKS_PER_MOVE = 20;

  /** The first tries get this part of all steps; a failure of the smallest goal doubles it. */
  private static final int TRIES = 20;

  /** The smallest part of the excess over the target that a try is to remove. */
  private static final double MIN_PART = 1.0 / 32;

  /** With which part tries go on after the smallest one failed. */
  private static final double NEXT_PART = 1.0 / 4;

  /** A try is given up when this many items, and four times those at its start, are outside. */
  private static final int MANY = 1000;

  private static final int MAX_EFFORT = 1 << 16;
  private static final int MAX_PENALTY = 1 << 14;
  private static final long IMMOVABLE = 1L << 44;

  private final Items items;
  private final LifetimeTree tree;
  private final long[] best;
  private final BitSet immovable;
  private final Gap gap;
  private final BooleanSupplier stop;
  private final Random random = new Random(1);
  private final long[] offsets;

  /** How hard it is to find a place for an item: it grows with its bytes and its lifetime. */
  private final int[] effort;

  private final int[] penalty;

  /** The items, those of most effort first. */
  private final int[] byEffort;

  private final int[] rank;

  /** The ranks of the items that have no place. */
  private final BitSet outside = new BitSet();

  private int outsideCount;
  private long looksLeft;

  /**
   * @param offsets the packing, which is changed
   * @param immovable items that must stay where they are
   * @param steps the steps that may be used, each as long as a state of {@link Search}
   * @param stop asked again and again whether to end
   */
  Ejection(
      Items items, long[] offsets, BitSet immovable, Gap gap, long steps, BooleanSupplier stop) {
    this.items = items;
    this.best = offsets;
    this.immovable = immovable;
    this.gap = gap;
    this.stop = stop;
    this.offsets = offsets.clone();
    looksLeft = Math.min(steps, Long.MAX_VALUE / LOOKS_PER_STEP) * LOOKS_PER_STEP;
    tree = new LifetimeTree(items.first, items.end);
    var roots = new double[items.count];
    for (int i = 0; i < items.count; i++) {
      roots[i] = Math.sqrt((double) items.size[i] * (items.end[i] - items.first[i]));
    }
    double most = Arrays.stream(roots).max().orElse(1);
    effort = Arrays.stream(roots).mapToInt(r -> 1 + (int) (r / most * MAX_EFFORT)).toArray();
    penalty = new int[items.count];
    Arrays.fill(penalty, 1);
    byEffort = IntSort.sorted(items.count, (a, b) -> Integer.compare(effort[b], effort[a]));
    rank = new int[items.count];
    for (int r = 0; r < byEffort.length; r++) {
      rank[byEffort[r]] = r;
    }
  }

  /** Lowers the packing to a height, or as far as it can. */
  void lower(long target) {
    long height = items.height(best);
    long looks = Math.max(1, looksLeft / TRIES);
    double part = 1;
    while (height > target && !isOver()) {
      long goal = height - Math.max(1, (long) ((height - target) * part));
      if (reach(goal, looks)) {
        System.arraycopy(offsets, 0, best, 0, best.length);
        height = items.height(best);
        part = Math.min(1, part * 2);
      } else if (part / 2 >= MIN_PART && height - goal > 1) {
        part /= 2;
      } else {
        part = NEXT_PART;
        looks *= 2;
      }
    }
  }

  private boolean isOver() {
    return looksLeft <= 0 || stop.getAsBoolean();
  }

  private boolean reach(long goal, long looks) {
    System.arraycopy(best, 0, offsets, 0, best.length);
    outside.clear();
    outsideCount = 0;
    for (int i = 0; i < items.count; i++) {
      if (top(i) > goal) {
        takeOut(i);
      }
    }
    looksLeft -= items.count / LOOKS_PER_MOVE;
    long limit = looksLeft - looks;
    int many = MANY + 4 * outsideCount;
    while (outsideCount > 0) {
      if (looksLeft < limit || outsideCount > many || isOver() || !putIn(goal)) {
        return false;
      }
    }
    return true;
  }

  private void takeOut(int item) {
    outside.set(rank[item]);
    outsideCount++;
  }

  /** Puts in the item of most effort; false where something immovable is everywhere in its way. */
  private boolean putIn(long goal) {
    int item = byEffort[outside.nextSetBit(0)];
    var near = tree.touching(items.first[item], items.end[item], Integer.MAX_VALUE);
    looksLeft -= near.length + LOOKS_PER_MOVE;
    int count = 0;
    for (int j : near) {
      if (!outside.get(rank[j])) {
        near[count++] = j;
      }
    }
    near = Arrays.copyOf(near, count);
    var place = new Place(item, near, goal);
    if (place.resistance >= IMMOVABLE) {
      return false;
    }
    if (place.resistance > 0) {
      penalty[item] = Math.min(MAX_PENALTY, penalty[item] + 1);
      for (int j : near) {
        if (offsets[j] < place.offset + items.size[item] && top(j) > place.offset) {
          takeOut(j);
        }
      }
    }
    offsets[item] = place.offset;
    outside.clear(rank[item]);
    outsideCount--;
    return true;
  }

  private long top(int item) {
    return offsets[item] + items.size[item];
  }

  private long resistance(int item) {
    return immovable.get(item) ? IMMOVABLE : (long) effort[item] * penalty[item];
  }

  /** The place of an item where what it meets resists least: the lowest place that is free. */
  private final class Place {
    private final long size;
    private final long alignment;
    private final long goal;
    private final Edges bottoms;
    private final Edges tops;
    private long offset;
    private long resistance = IMMOVABLE;
    private int equals;

    /**
     * @param near the items that have a place and are live at the same time
     */
    Place(int item, int[] near, long goal) {
      this.size = items.size[item];
      this.alignment = items.alignment[item];
      this.goal = goal;
      bottoms = new Edges(near, 0);
      tops = new Edges(near, 1);
      onTop(0);
      onTop(gap.end());
      for (int k = 0; k < near.length && resistance > 0; k++) {
        onTop(tops.edge[k]);
      }
      if (resistance > 0) {
        below(goal);
        below(gap.begin());
        for (long edge : bottoms.edge) {
          below(edge);
        }
      }
    }

    private void onTop(long edge) {
      consider(Item.alignUp(edge, alignment));
    }

    private void below(long edge) {
      consider((edge - size) & -alignment);
    }

    private void consider(long at) {
      long end = at + size;
      if (at < 0 || end > goal || (at < gap.end() && end > gap.begin())) {
        return;
      }
      long met = bottoms.resistanceBelow(end) - tops.resistanceBelow(at + 1);
      if (met < resistance) {
        resistance = met;
        offset = at;
        equals = 1;
      } else if (met == resistance && met > 0 && random.nextInt(++equals) == 0) {
        offset = at;
      }
    }
  }

  /** Lower or upper edges of items, ascending, and what the items up to each resist. */
  private final class Edges {
    private final long[] edge;
    private final long[] resistance;

    /**
     * @param sizes 0 for lower edges, 1 for upper ones
     */
    Edges(int[] near, int sizes) {
      var sorted = near.clone();
      IntSort.sortBy(sorted, i -> offsets[i] + sizes * items.size[i]);
      edge = new long[sorted.length];
      resistance = new long[sorted.length + 1];
      for (int k = 0; k < sorted.length; k++) {
        edge[k] = offsets[sorted[k]] + sizes * items.size[sorted[k]];
        resistance[k + 1] = resistance[k] + resistance(sorted[k]);
      }
    }

    /** {@return the resistance of the items with an edge below an offset} */
    long resistanceBelow(long offset) {
      int from = 0;
      int to = edge.length;
      while (from < to) {
        int middle = (from + to) >>> 1;
        if (edge[middle] < offset) {
          from = middle + 1;
        } else {
          to = middle;
        }
      }
      return resistance[from];
    }
  }

  long stepsLeft() {
    return Math.max(0, looksLeft) / LOOKS_PER_STEP;
  }
}
