package dev.symplan.planner.pack;

import java.util.Arrays;
import java.util.function.BooleanSupplier;

/**
 * Exact search for a packing within a capacity, for some hundreds of items.
 *
 * <p>Only packings are looked for in which no item could be moved down: where there is a packing at
 * all, the one with the least sum of offsets is such. Packed items are final and lie below all
 * items that overlap them and are not packed yet, so each open item has a least offset. A section's
 * <em>floor</em> is the least offset of its open items; a stretch of sections whose floor is lower
 * than both neighbours' can be continued only by an item that lies inside it, at just that height.
 * The search branches on one such section: which of its items lies on the floor, or none of them.
 *
 * <p>What prunes: a section's floor, with all its open items stacked on it, must stay within the
 * capacity, also counting only the items above some height; no open item may fit below one that is
 * packed above it; parts that share no open item any more are solved one by one, and what was found
 * to have no solution is remembered, whatever order led there.
 *
 * <p>The ideas of canonical solutions, inference on sections and dominance are those of M. Moffitt,
 * MiniMalloc (ASPLOS 2023).
 */
final class Search {

  /** How a search ends. */
  enum Outcome {
    FOUND,
    /** There is no packing within the capacity. */
    IMPOSSIBLE,
    /** The steps were used up. */
    UNKNOWN
  }

  /** Which section to branch on, among those that could be continued. */
  enum Branching {
    /** The lowest, as gravity would fill them. */
    LOWEST,
    /** Where there are the fewest choices. */
    FEWEST_CHOICES,
    /** Where there are the fewest choices for how often sections have been in the way before. */
    FEWEST_CHOICES_BY_FAILURES
  }

  /** Stands for no pinned offset. */
  static final long FREE = -1;

  private static final int MAX_MEMO_BITS = 18;

  /** A power of two, less one: after so many states, whether to end is asked again. */
  private static final int STATES_UNASKED = 63;

  private final Items items;
  private final SearchState state;

  /** The same for identical items. */
  private final long[] identity;

  private final int memoBits;
  private final long[] memo;
  private int[] choices = new int[1024];
  private int choiceCount;

  private int[] rank = {};
  private Branching branching = Branching.LOWEST;
  private long stepsLeft;
  private BooleanSupplier stop = () -> false;

  /**
   * @param pins the offsets of items that are not to be moved, {@link #FREE} for the others
   * @param gap the offsets that no other item may touch
   */
  Search(Items items, long[] pins, Gap gap, long capacity) {
    this.items = items;
    state = new SearchState(items, pins, gap, capacity);
    memoBits =
        Math.min(MAX_MEMO_BITS, 11 + Integer.SIZE - Integer.numberOfLeadingZeros(items.count));
    memo = new long[1 << memoBits];
    identity = new long[items.count];
    for (int i = 0; i < items.count; i++) {
      long h = mix(items.first[i] * 0x9E3779B97F4A7C15L + items.end[i]);
      identity[i] = mix(mix(mix(h + items.size[i]) + items.alignment[i]) + pins[i]);
    }
  }

  /** {@return pins for items that are all free} */
  static long[] free(int count) {
    var pins = new long[count];
    Arrays.fill(pins, FREE);
    return pins;
  }

  private static long mix(long x) {
    long z = (x ^ (x >>> 30)) * 0xbf58476d1ce4e5b9L;
    z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
    return z ^ (z >>> 31);
  }

  /**
   * Searches from the start, but still knows the dead ends of earlier runs.
   *
   * @param order the items, those first that are tried first
   * @param steps how many states may be looked at
   * @param stop asked again and again whether to end
   */
  Outcome run(int[] order, Branching branching, long steps, BooleanSupplier stop) {
    this.branching = branching;
    this.stop = stop;
    stepsLeft = steps;
    rank = new int[items.count];
    for (int r = 0; r < order.length; r++) {
      rank[order[r]] = r;
    }
    choiceCount = 0;
    if (!state.reset()) {
      return Outcome.IMPOSSIBLE;
    }
    if (solve(0, items.sections)) {
      return Outcome.FOUND;
    }
    return stepsLeft < 0 ? Outcome.UNKNOWN : Outcome.IMPOSSIBLE;
  }

  long capacity() {
    return state.capacity;
  }

  /** {@return how many of its steps the last run did not need} */
  long stepsLeft() {
    return Math.max(0, stepsLeft);
  }

  /** {@return the offsets that a run found} */
  long[] offsets() {
    return state.offsets;
  }

  /** Packs all open items that live inside {@code [from, to)}; leaves them open where it cannot. */
  private boolean solve(int from, int to) {
    int mark = state.mark();
    for (int s = from; s < to; ) {
      int stop = s + 1;
      if (state.openCount[s] > 0) {
        while (stop < to && state.crossing[stop] > 0) {
          stop++;
        }
        if (!solveConnected(s, stop)) {
          state.undo(mark);
          return false;
        }
      }
      s = stop;
    }
    return true;
  }

  private boolean solveConnected(int from, int to) {
    if ((--stepsLeft & STATES_UNASKED) == 0 && stop.getAsBoolean()) {
      stepsLeft = -1;
    }
    if (stepsLeft < 0) {
      return false;
    }
    long key = key(from, to);
    int slot = (int) (key >>> (Long.SIZE - memoBits));
    if (memo[slot] == key) {
      return false;
    }
    int section = branchingSection(from, to);
    int begin = choiceCount;
    collectChoices(section);
    int end = choiceCount;
    int mark = state.mark();
    for (int k = begin; k < end; k++) {
      if (isNew(k, begin)) {
        if (state.pack(choices[k]) && solve(from, to)) {
          return true;
        }
        state.undo(mark);
        if (stepsLeft < 0) {
          return false;
        }
      }
    }
    choiceCount = begin;
    if (state.raiseFloor(section) && solve(from, to)) {
      return true;
    }
    state.undo(mark);
    if (stepsLeft >= 0) {
      memo[slot] = key;
    }
    return false;
  }

  /** The state that the future of a part depends on: its open items, and how low each can be. */
  private long key(int from, int to) {
    var least = state.least;
    var support = state.support;
    long key = 0;
    for (int i = 0; i < items.count; i++) {
      if (least[i] != SearchState.CLOSED && items.first[i] >= from && items.end[i] <= to) {
        key += mix(identity[i] + least[i] * 0x9E3779B97F4A7C15L + (support[i] << 1));
      }
    }
    return key;
  }

  private int branchingSection(int from, int to) {
    var floor = state.floor;
    int chosen = -1;
    long chosenPrimary = Long.MAX_VALUE;
    long chosenSecondary = Long.MAX_VALUE;
    for (int s = from; s < to; ) {
      int stop = s + 1;
      while (stop < to && floor[stop] == floor[s]) {
        stop++;
      }
      boolean low =
          (s == from || floor[s - 1] > floor[s]) && (stop == to || floor[stop] > floor[s]);
      for (int t = s; low && t < stop; t++) {
        long slack = state.capacity - floor[t] - state.open[t];
        long options = 2L * state.onFloor[t] + (slack > 0 ? 1 : 0);
        long primary =
            switch (branching) {
              case LOWEST -> floor[t];
              case FEWEST_CHOICES -> options;
              case FEWEST_CHOICES_BY_FAILURES -> (options << 20) / state.failures[t];
            };
        long secondary = branching == Branching.LOWEST ? options : floor[t];
        if (primary < chosenPrimary || (primary == chosenPrimary && secondary < chosenSecondary)) {
          chosen = t;
          chosenPrimary = primary;
          chosenSecondary = secondary;
        }
      }
      s = stop;
    }
    return chosen;
  }

  /**
   * The items on the floor that have something below them, those of least rank first; a pinned item
   * alone, as then no other can be there.
   */
  private void collectChoices(int section) {
    var members = state.members[section];
    long height = state.floor[section];
    int begin = choiceCount;
    if (choices.length < begin + members.length) {
      choices = Arrays.copyOf(choices, 2 * choices.length + members.length);
    }
    for (int k = 0; k < state.openCount[section]; k++) {
      int i = members[k];
      if (state.least[i] != height) {
        continue;
      }
      if (state.pins[i] != FREE) {
        choiceCount = begin;
        choices[choiceCount++] = i;
        return;
      }
      if (state.support[i] == height || height == state.gap.end()) {
        int at = choiceCount++;
        while (at > begin && rank[choices[at - 1]] > rank[i]) {
          choices[at] = choices[at - 1];
          at--;
        }
        choices[at] = i;
      }
    }
  }

  private boolean isNew(int choice, int begin) {
    long own = identity[choices[choice]];
    for (int k = begin; k < choice; k++) {
      if (identity[choices[k]] == own) {
        return false;
      }
    }
    return true;
  }
}
