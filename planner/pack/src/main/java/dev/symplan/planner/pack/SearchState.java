package dev.symplan.planner.pack;

import java.util.Arrays;

/**
 * The state of an unfinished packing in {@link Search}: the packed items, and how low each of the
 * other items, the open ones, can still be. Changes can be undone.
 *
 * <p>Each change infers what follows: an open item lies above all packed ones that overlap it; a
 * section's floor is the least offset of its open items; where a section's open items, stacked on
 * its floor, exceed the capacity, or those above some height stacked on that, nothing is left.
 */
final class SearchState {
  static final long CLOSED = Long.MAX_VALUE;

  private final Items items;

  /** Offsets of items that are not to be moved, {@link Search#FREE} for the others. */
  final long[] pins;

  final Gap gap;
  final long capacity;

  /** The items of each section, the open ones first. */
  final int[][] members;

  /** By item and section, from the item's first, where the item is in the section's members. */
  private final int[][] positions;

  /** The items that overlap each item in time. */
  private final int[][] overlaps;

  /** Least offset of an open item, {@link #CLOSED} for a packed one. */
  final long[] least;

  /** The top of what is packed below an item, rounded up to its alignment; at most its least. */
  final long[] support;

  final long[] floor;

  /** How many items a section has on its floor. */
  final int[] onFloor;

  /** Bytes of a section's open items. */
  final long[] open;

  final int[] openCount;

  /** Open items that live on both sides of the edge before a section. */
  final int[] crossing;

  /** How often a section could not be packed any more. */
  final int[] failures;

  final long[] offsets;
  private final Trail trail = new Trail();

  SearchState(Items items, long[] pins, Gap gap, long capacity) {
    this.items = items;
    this.pins = pins;
    this.gap = gap;
    this.capacity = capacity;
    members = membersOf(items);
    overlaps = overlapsOf(items, members);
    positions = positionsOf(items, members);
    least = new long[items.count];
    support = new long[items.count];
    offsets = new long[items.count];
    floor = new long[items.sections];
    onFloor = new int[items.sections];
    open = new long[items.sections];
    openCount = new int[items.sections];
    crossing = new int[items.sections + 1];
    failures = new int[items.sections];
    Arrays.fill(failures, 1);
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

  private static int[][] positionsOf(Items items, int[][] members) {
    var positions = new int[items.count][];
    for (int i = 0; i < items.count; i++) {
      positions[i] = new int[items.end[i] - items.first[i]];
    }
    for (int s = 0; s < items.sections; s++) {
      for (int k = 0; k < members[s].length; k++) {
        int i = members[s][k];
        positions[i][s - items.first[i]] = k;
      }
    }
    return positions;
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

  /**
   * Takes everything back; only how often sections failed is still known.
   *
   * @return whether all sections could be packed
   */
  boolean reset() {
    trail.clear();
    for (int i = 0; i < items.count; i++) {
      least[i] = pins[i] == Search.FREE ? lift(i, 0) : pins[i];
      support[i] = least[i];
    }
    Arrays.fill(open, 0);
    Arrays.fill(openCount, 0);
    Arrays.fill(crossing, 0);
    for (int i = 0; i < items.count; i++) {
      count(i, 1);
    }
    return inferFloors(0, items.sections, 0);
  }

  /** {@return where {@link #undo} is to go back to} */
  int mark() {
    return trail.size();
  }

  /** Packs an item at its least offset; false where that leads nowhere. */
  boolean pack(int item) {
    long offset = least[item];
    long top = offset + items.size[item];
    int from = items.first[item];
    int to = items.end[item];
    offsets[item] = offset;
    trail.push(item, offset, support[item]);
    least[item] = CLOSED;
    close(item);
    for (int j : overlaps[item]) {
      if (least[j] == CLOSED) {
        continue;
      }
      if (pins[j] != Search.FREE) {
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

  /**
   * Says that none of a section's items lies on its floor: each must lie on some other item.
   *
   * @return false where that leads nowhere
   */
  boolean raiseFloor(int section) {
    long height = floor[section];
    if (height + open[section] >= capacity) {
      return false;
    }
    var onIt = new int[onFloor[section]];
    var raised = new long[onIt.length];
    int count = 0;
    for (int k = 0; k < openCount[section]; k++) {
      int i = members[section][k];
      if (least[i] == height) {
        if (pins[i] != Search.FREE) {
          return false;
        }
        onIt[count] = i;
        raised[count++] = leastTopBelow(i, height);
      }
    }
    int from = section;
    int to = section + 1;
    long lowest = Long.MAX_VALUE;
    for (int k = 0; k < count; k++) {
      int i = onIt[k];
      if (raised[k] > capacity - items.size[i]) {
        return false;
      }
      trail.push(i, least[i], support[i]);
      least[i] = raised[k];
      lowest = Math.min(lowest, raised[k]);
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
    long aligned = Item.alignUp(offset, items.alignment[item]);
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
      var here = members[s];
      for (int k = openCount[s] - 1; k >= 0; k--) {
        int i = here[k];
        long offset = least[i];
        if (offset <= lowest) {
          count = offset == lowest ? count + 1 : 1;
          lowest = offset;
        }
        if (offset >= height) {
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

  /**
   * Moves an item after the open ones. What is closed last comes first after them, so that it is
   * open again as soon as it is counted again.
   */
  private void close(int item) {
    count(item, -1);
    int from = items.first[item];
    for (int s = from; s < items.end[item]; s++) {
      var here = members[s];
      int position = positions[item][s - from];
      int last = openCount[s];
      int other = here[last];
      here[position] = other;
      here[last] = item;
      positions[other][s - items.first[other]] = position;
      positions[item][s - from] = last;
    }
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

  /** Takes back what was done since the mark. */
  void undo(int mark) {
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
}
