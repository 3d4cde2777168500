package dev.symplan.planner.pack;

import java.util.Arrays;

/** Sorts positions by what they stand for, without boxing them. */
final class IntSort {
  private static final int SHORT = 7;

  /** Which of two positions comes first, as a comparator says it. */
  interface Order {
    int compare(int a, int b);
  }

  /** The number that a position is sorted by. */
  interface Key {
    long of(int position);
  }

  private IntSort() {}

  /** {@return 0 to count - 1, sorted; equal ones stay in order} */
  static int[] sorted(int count, Order order) {
    var positions = new int[count];
    for (int i = 0; i < count; i++) {
      positions[i] = i;
    }
    sort(positions, order);
    return positions;
  }

  /**
   * Sorts by ascending keys: stable. Where all keys leave enough of a long's bits for an index,
   * both are sorted as one primitive, which is faster.
   */
  static void sortBy(int[] positions, Key key) {
    int bits = Integer.SIZE - Integer.numberOfLeadingZeros(positions.length);
    long most = Long.MAX_VALUE >> bits;
    var packed = new long[positions.length];
    for (int k = 0; k < packed.length; k++) {
      long value = key.of(positions[k]);
      if (value < 0 || value > most) {
        sort(positions, (a, b) -> Long.compare(key.of(a), key.of(b)));
        return;
      }
      packed[k] = value << bits | k;
    }
    Arrays.sort(packed);
    var unsorted = positions.clone();
    for (int k = 0; k < packed.length; k++) {
      positions[k] = unsorted[(int) (packed[k] & (1L << bits) - 1)];
    }
  }

  /** Merge sort: stable. */
  static void sort(int[] positions, Order order) {
    sort(positions.clone(), positions, 0, positions.length, order);
  }

  private static void sort(int[] from, int[] to, int begin, int end, Order order) {
    if (end - begin <= SHORT) {
      insert(to, begin, end, order);
      return;
    }
    int middle = (begin + end) >>> 1;
    sort(to, from, begin, middle, order);
    sort(to, from, middle, end, order);
    if (order.compare(from[middle - 1], from[middle]) <= 0) {
      System.arraycopy(from, begin, to, begin, end - begin);
      return;
    }
    int l = begin;
    int r = middle;
    for (int k = begin; k < end; k++) {
      if (r >= end || (l < middle && order.compare(from[l], from[r]) <= 0)) {
        to[k] = from[l++];
      } else {
        to[k] = from[r++];
      }
    }
  }

  private static void insert(int[] positions, int begin, int end, Order order) {
    for (int k = begin + 1; k < end; k++) {
      int moved = positions[k];
      int at = k;
      while (at > begin && order.compare(positions[at - 1], moved) > 0) {
        positions[at] = positions[at - 1];
        at--;
      }
      positions[at] = moved;
    }
  }
}
