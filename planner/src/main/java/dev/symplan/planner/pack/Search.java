package dev.symplan.planner.pack;

import java.util.Arrays;

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

  private static final int MEMO_BITS = 18;

  private static final long CLOSED = Long.MAX_VALUE;

  private final Items items;

  /** Offsets of items that are not to be moved, {@link #FREE} for the others. */
  private final long[] pins;

  private final Gap gap;
  private final int sections;
  private final long capacity;

  /** The items of each section. */
  private final int[][] members;

  /** The items that overlap each item in time. */
  private final int[][] overlaps;

  /** The same for items that cannot be told apart. */
  private final long[] identity;

  /** Least offset of an open item, {@link #CLOSED} for a packed one. */
  private final long[] least;

  /** The top of what is packed below an item, rounded up to its alignment; at most its least. */
  private final long[] support;

  private final long[] floor;

  /** How many items a section has on its floor. */
  private final int[] onFloor;

  /** Bytes of a section's open items. */
  private final long[] open;

  private final int[] openCount;

  /** Open items that live on both sides of the edge before a section. */
  private final int[] crossing;

  /** How often a section could not be packed any more. */
  private final int[] failures;

  private final long[] offsets;
  private final long[] memo = new long[1 << MEMO_BITS];
  private final Trail trail = new Trail();
  private int[] choices = new int[1024];
  private int choiceCount;

  private int[] rank = {};
  private Branching branching = Branching.LOWEST;
  private long stepsLeft;

  /**
   * @param pins the offsets of items that are not to be moved, {@link #FREE} for the others
   * @param gap the offsets that no other item may touch
   */
  Search(Items items, long[] pins, Gap gap, long capacity) {
    this.items = items;
    this.pins = pins;
    this.gap = gap;
    this.capacity = capacity;
    sections = items.sections;
    members = membersOf(items);
    overlaps = overlapsOf(items, members);
    identity = new long[items.count];
    for (int i = 0; i < items.count; i++) {
      long h = mix(items.first[i] * 0x9E3779B97F4A7C15L + items.end[i]);
      identity[i] = mix(mix(mix(h + items.size[i]) + items.alignment[i]) + pins[i]);
    }
    least = new long[items.count];
    support = new long[items.count];
    offsets = new long[items.count];
    floor = new long[sections];
    onFloor = new int[sections];
    open = new long[sections];
    openCount = new int[sections];
    crossing = new int[sections + 1];
    failures = new int[sections];
    Arrays.fill(failures, 1);
  }

  /** {@return pins for items that are all free} */
  static long[] free(int count) {
    var pins = new long[count];
    Arrays.fill(pins, FREE);
    return pins;
  }

  private static int[][] membersOf(Items items) {
    var counts = new int[items.sections];
    for (int i = 0; i < items.count; i++) {
      for (int s = items.first[i]; s < items.end[i]; s++) {
        counts[s]++;
      }
    }
    var members = new int[items.sections][];
    for (int s = 0; s < items.sections; s++) {
      members[s] = new int[counts[s]];
    }
    for (int i = items.count - 1; i >= 0; i--) {
      for (int s = items.first[i]; s < items.end[i]; s++) {
        members[s][--counts[s]] = i;
      }
    }
    return members;
  }

  private static int[][] overlapsOf(Items items, int[][] members) {
    var overlaps = new int[items.count][];
    var found = new int[items.count];
    for (int i = 0; i < items.count; i++) {
      int count = 0;
      for (int s = items.first[i]; s < items.end[i]; s++) {
        for (int j : members[s]) {
          if (j != i && Math.max(items.first[i], items.first[j]) == s) {
            found[count++] = j;
          }
        }
      }
      overlaps[i] = Arrays.copyOf(found, count);
    }
    return overlaps;
  }

  private static long mix(long x) {
    long z = (x ^ (x >>> 30)) * 0xbf58476d1ce4e5b9L;
    z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
    return z ^ (z >>> 31);
  }

  /**
   * Searches, from the start; but what earlier runs found impossible is still known.
   *
   * @param order the items, those first that are tried first
   * @param steps how many states may be looked at
   */
  Outcome run(int[] order, Branching branching, long steps) {
    this.branching = branching;
    stepsLeft = steps;
    rank = new int[items.count];
    for (int r = 0; r < order.length; r++) {
      rank[order[r]] = r;
    }
    trail.clear();
    choiceCount = 0;
    for (int i = 0; i < items.count; i++) {
      least[i] = pins[i] == FREE ? lift(i, 0) : pins[i];
      support[i] = least[i];
    }
    Arrays.fill(open, 0);
    Arrays.fill(openCount, 0);
    Arrays.fill(crossing, 0);
    for (int i = 0; i < items.count; i++) {
      count(i, 1);
    }
    if (!inferFloors(0, sections, 0)) {
      return Outcome.IMPOSSIBLE;
    }
    if (solve(0, sections)) {
      return Outcome.FOUND;
    }
    return stepsLeft < 0 ? Outcome.UNKNOWN : Outcome.IMPOSSIBLE;
  }

  /** {@return how many of its steps the last run did not need} */
  long stepsLeft() {
    return Math.max(0, stepsLeft);
  }

  /** {@return the offsets that a run found} */
  long[] offsets() {
    return offsets;
  }

  /** Packs all open items that live inside {@code [from, to)}; leaves them open where it cannot. */
  private boolean solve(int from, int to) {
    int mark = trail.size();
    for (int s = from; s < to; ) {
      int stop = s + 1;
      if (openCount[s] > 0) {
        while (stop < to && crossing[stop] > 0) {
          stop++;
        }
        if (!solveConnected(s, stop)) {
          undo(mark);
          return false;
        }
      }
      s = stop;
    }
    return true;
  }

  private boolean solveConnected(int from, int to) {
    if (--stepsLeft < 0) {
      return false;
    }
    long state = state(from, to);
    int slot = (int) (state >>> (64 - MEMO_BITS));
    if (memo[slot] == state) {
      return false;
    }
    int section = branchingSection(from, to);
    long height = floor[section];
    int begin = choiceCount;
    collectChoices(section, height);
    int end = choiceCount;
    int mark = trail.size();
    for (int k = begin; k < end; k++) {
      if (isNew(k, begin)) {
        if (pack(choices[k]) && solve(from, to)) {
          return true;
        }
        undo(mark);
        if (stepsLeft < 0) {
          return false;
        }
      }
    }
    choiceCount = begin;
    if (raiseFloor(section, height) && solve(from, to)) {
      return true;
    }
    undo(mark);
    if (stepsLeft >= 0) {
      memo[slot] = state;
    }
    return false;
  }

  /** What the future of a part depends on: its open items, and how low each can be. */
  private long state(int from, int to) {
    long state = 0;
    for (int i = 0; i < items.count; i++) {
      if (least[i] != CLOSED && items.first[i] >= from && items.end[i] <= to) {
        state += mix(identity[i] + least[i] * 0x9E3779B97F4A7C15L + (support[i] << 1));
      }
    }
    return state;
  }

  private int branchingSection(int from, int to) {
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
        long slack = capacity - floor[t] - open[t];
        long options = 2L * onFloor[t] + (slack > 0 ? 1 : 0);
        long primary =
            switch (branching) {
              case LOWEST -> floor[t];
              case FEWEST_CHOICES -> options;
              case FEWEST_CHOICES_BY_FAILURES -> (options << 20) / failures[t];
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
  private void collectChoices(int section, long height) {
    int begin = choiceCount;
    if (choices.length < begin + members[section].length) {
      choices = Arrays.copyOf(choices, 2 * choices.length + members[section].length);
    }
    for (int i : members[section]) {
      if (least[i] != height) {
        continue;
      }
      if (pins[i] != FREE) {
        choiceCount = begin;
        choices[choiceCount++] = i;
        return;
      }
      if (support[i] == height || height == gap.end()) {
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

  /** Packs an item at its least offset; false where that leads nowhere. */
  private boolean pack(int item) {
    long offset = least[item];
    long top = offset + items.size[item];
    int from = items.first[item];
    int to = items.end[item];
    offsets[item] = offset;
    trail.push(item, offset, support[item]);
    least[item] = CLOSED;
    count(item, -1);
    for (int j : overlaps[item]) {
      if (least[j] == CLOSED) {
        continue;
      }
      if (pins[j] != FREE) {
        if (top > pins[j]) {
          return false;
        }
        continue;
      }
      if (support[j] + items.size[j] <= offset
          && items.first[j] >= items.first[item]
          && items.end[j] <= items.end[item]) {
        return false;
      }
      long lifted = lift(j, top);
      if (support[j] < lifted) {
        trail.push(j, least[j], support[j]);
        support[j] = lifted;
        if (least[j] < lifted) {
          if (lifted + items.size[j] > capacity) {
            return false;
          }
          least[j] = lifted;
          from = Math.min(from, items.first[j]);
          to = Math.max(to, items.end[j]);
        }
      }
    }
    return inferFloors(from, to, top);
  }

  /** Says that none of a section's items lies on its floor: each must lie on some other item. */
  private boolean raiseFloor(int section, long height) {
    if (height + open[section] >= capacity) {
      return false;
    }
    int from = section;
    int to = section + 1;
    long lowest = Long.MAX_VALUE;
    int begin = choiceCount;
    if (choices.length < begin + members[section].length) {
      choices = Arrays.copyOf(choices, 2 * choices.length + members[section].length);
    }
    for (int i : members[section]) {
      if (least[i] == height) {
        if (pins[i] != FREE) {
          return false;
        }
        choices[choiceCount++] = i;
      }
    }
    int end = choiceCount;
    choiceCount = begin;
    var lifted = new long[end - begin];
    for (int k = begin; k < end; k++) {
      lifted[k - begin] = leastTopBelow(choices[k], height);
    }
    for (int k = begin; k < end; k++) {
      int i = choices[k];
      long raised = lifted[k - begin];
      if (raised > capacity - items.size[i]) {
        return false;
      }
      trail.push(i, least[i], support[i]);
      least[i] = raised;
      lowest = Math.min(lowest, raised);
      from = Math.min(from, items.first[i]);
      to = Math.max(to, items.end[i]);
    }
    return inferFloors(from, to, lowest);
  }

  /** The least offset above a height at which something could be below the item. */
  private long leastTopBelow(int item, long height) {
    long lowest = height < gap.end() ? gap.end() : Long.MAX_VALUE / 2;
    for (int j : overlaps[item]) {
      if (least[j] != CLOSED) {
        lowest = Math.min(lowest, least[j] + items.size[j]);
      }
    }
    return lift(item, lowest);
  }

  /** The least offset at or above one that the item may have. */
  private long lift(int item, long offset) {
    long aligned = Buffer.alignUp(offset, items.alignment[item]);
    boolean below = aligned + items.size[item] <= gap.begin();
    return below || aligned >= gap.end() ? aligned : gap.end();
  }

  /**
   * Finds the floors of {@code [from, to)} again.
   *
   * @param height where items have been raised to: those at or above it must fit above it, too
   * @return whether all sections can still be packed
   */
  private boolean inferFloors(int from, int to, long height) {
    for (int s = from; s < to; s++) {
      if (openCount[s] == 0) {
        continue;
      }
      long lowest = CLOSED;
      int count = 0;
      long above = 0;
      for (int i : members[s]) {
        long offset = least[i];
        if (offset <= lowest) {
          count = offset == lowest ? count + 1 : 1;
          lowest = offset;
        }
        if (offset >= height && offset != CLOSED) {
          above += items.size[i];
        }
      }
      if (lowest + open[s] > capacity || (above > 0 && height + above > capacity)) {
        failures[s]++;
        return false;
      }
      if (floor[s] != lowest || onFloor[s] != count) {
        trail.pushFloor(s, floor[s], onFloor[s]);
        floor[s] = lowest;
        onFloor[s] = count;
      }
    }
    return true;
  }

  private void count(int item, int sign) {
    long bytes = sign * items.size[item];
    for (int s = items.first[item]; s < items.end[item]; s++) {
      open[s] += bytes;
      openCount[s] += sign;
      crossing[s] += sign;
    }
    crossing[items.first[item]] -= sign;
  }

  private void undo(int mark) {
    while (trail.size() > mark) {
      trail.pop();
      int key = trail.key();
      if (key < 0) {
        floor[~key] = trail.value();
        onFloor[~key] = (int) trail.other();
      } else {
        if (least[key] == CLOSED) {
          count(key, 1);
        }
        least[key] = trail.value();
        support[key] = trail.other();
      }
    }
  }

  /** What was changed, to be taken back in reverse. */
  private static final class Trail {
    private int[] keys = new int[1 << 12];
    private long[] values = new long[1 << 13];
    private int size;

    void clear() {
      size = 0;
    }

    int size() {
      return size;
    }

    void push(int item, long least, long support) {
      if (size == keys.length) {
        keys = Arrays.copyOf(keys, 2 * size);
        values = Arrays.copyOf(values, 4 * size);
      }
      keys[size] = item;
      values[2 * size] = least;
      values[2 * size + 1] = support;
      size++;
    }

    void pushFloor(int section, long floor, int onFloor) {
      push(~section, floor, onFloor);
    }

    void pop() {
      size--;
    }

    int key() {
      return keys[size];
    }

    long value() {
      return values[2 * size];
    }

    long other() {
      return values[2 * size + 1];
    }
  }
}
