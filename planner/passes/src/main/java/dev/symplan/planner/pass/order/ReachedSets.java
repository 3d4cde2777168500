package dev.symplan.planner.pass.order;

import java.util.Arrays;

/**
 * Sets of units in the order in which they were first reached, each with the way to it whose peak
 * is lowest: a hash table with linear probing in arrays, as the search makes millions of entries.
 */
final class ReachedSets {
  private long[] sets = new long[64];
  private long[] peaks = new long[64];
  private int[] lasts = new int[64];
  private int count;

  /** Numbers of sets plus one, at most half full; 0 where there is none. */
  private int[] table = new int[128];

  int count() {
    return count;
  }

  long set(int number) {
    return sets[number];
  }

  /** {@return the bytes of the lowest peak on a way to a set} */
  long peak(int number) {
    return peaks[number];
  }

  /** {@return the unit that runs last on that way} */
  int last(int number) {
    return lasts[number];
  }

  /** {@return the number of a set that was reached} */
  int find(long set) {
    return table[slot(set)] - 1;
  }

  /** Of several ways to a set with the same peak, the first one stays. */
  void add(long set, long peak, int last) {
    int number = find(set);
    if (number < 0) {
      if (count == sets.length) {
        grow();
      }
      number = count++;
      sets[number] = set;
      table[slot(set)] = count;
    } else if (peaks[number] <= peak) {
      return;
    }
    peaks[number] = peak;
    lasts[number] = last;
  }

  /** Where a set is in the table, or where it would go. */
  private int slot(long set) {
    int mask = table.length - 1;
    long mixed = set * 0x9e3779b97f4a7c15L;
    int slot = (int) (mixed ^ mixed >>> 32) & mask;
    while (table[slot] != 0 && sets[table[slot] - 1] != set) {
      slot = slot + 1 & mask;
    }
    return slot;
  }

  private void grow() {
    sets = Arrays.copyOf(sets, 2 * count);
    peaks = Arrays.copyOf(peaks, 2 * count);
    lasts = Arrays.copyOf(lasts, 2 * count);
    table = new int[2 * table.length];
    for (int i = 0; i < count; i++) {
      table[slot(sets[i])] = i + 1;
    }
  }
}
