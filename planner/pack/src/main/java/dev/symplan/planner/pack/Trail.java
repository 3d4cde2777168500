package dev.symplan.planner.pack;

import java.util.Arrays;

/** The changes of {@link SearchState}, to be undone in reverse. */
final class Trail {
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
