package dev.symplan.planner.pack;

import java.util.Arrays;

/**
 * A skyline over sections: stretches of one height, and which of them is lowest. A plateau is named
 * by its first section. Neighbours never have the same height.
 */
final class Plateaus {
  private final int sections;
  private final int[] end;
  private final int[] previous;
  private final long[] height;

  /** A binary heap of plateaus, lowest first, leftmost among equals. */
  private final int[] heap;

  private final int[] index;
  private int heaped;

  Plateaus(int sections) {
    this.sections = sections;
    end = new int[sections];
    previous = new int[sections];
    height = new long[sections];
    heap = new int[sections];
    index = new int[sections];
  }

  /** Makes it one plateau of height 0. */
  void reset() {
    Arrays.fill(index, -1);
    heaped = 0;
    add(0, sections, -1, 0);
  }

  int lowest() {
    return heap[0];
  }

  int end(int plateau) {
    return end[plateau];
  }

  long height(int plateau) {
    return height[plateau];
  }

  /** {@return the height of the lower neighbour; {@code Long.MAX_VALUE} if none exists} */
  long lowerNeighbour(int plateau) {
    long left = plateau > 0 ? height[previous[plateau]] : Long.MAX_VALUE;
    long right = end[plateau] < sections ? height[end[plateau]] : Long.MAX_VALUE;
    return Math.min(left, right);
  }

  /** Raises {@code [from, to)}, a part of one plateau, and joins it to neighbours as high. */
  void raise(int plateau, int from, int to, long top) {
    int stop = end[plateau];
    if (to < stop) {
      add(to, stop, from, height[plateau]);
    }
    if (stop < sections) {
      previous[stop] = to < stop ? to : from;
    }
    if (from > plateau) {
      end[plateau] = from;
      add(from, to, plateau, top);
    } else {
      end[plateau] = to;
      height[plateau] = top;
      siftDown(index[plateau]);
    }
    int next = to;
    if (next < sections && height[next] == top) {
      end[from] = end[next];
      drop(next);
      if (end[from] < sections) {
        previous[end[from]] = from;
      }
    }
    if (from > 0 && height[previous[from]] == top) {
      int left = previous[from];
      end[left] = end[from];
      drop(from);
      if (end[left] < sections) {
        previous[end[left]] = left;
      }
    }
  }

  private void add(int plateau, int stop, int before, long top) {
    end[plateau] = stop;
    previous[plateau] = before;
    height[plateau] = top;
    heap[heaped] = plateau;
    index[plateau] = heaped;
    siftUp(heaped++);
  }

  private void drop(int plateau) {
    int at = index[plateau];
    index[plateau] = -1;
    int moved = heap[--heaped];
    if (moved != plateau) {
      heap[at] = moved;
      index[moved] = at;
      siftUp(at);
      siftDown(index[moved]);
    }
  }

  private boolean isBelow(int a, int b) {
    return height[a] < height[b] || (height[a] == height[b] && a < b);
  }

  private void siftUp(int from) {
    int at = from;
    int plateau = heap[at];
    while (at > 0) {
      int parent = (at - 1) >>> 1;
      if (!isBelow(plateau, heap[parent])) {
        break;
      }
      heap[at] = heap[parent];
      index[heap[at]] = at;
      at = parent;
    }
    heap[at] = plateau;
    index[plateau] = at;
  }

  private void siftDown(int from) {
    int at = from;
    int plateau = heap[at];
    while (2 * at + 1 < heaped) {
      int child = 2 * at + 1;
      if (child + 1 < heaped && isBelow(heap[child + 1], heap[child])) {
        child++;
      }
      if (!isBelow(heap[child], plateau)) {
        break;
      }
      heap[at] = heap[child];
      index[heap[at]] = at;
      at = child;
    }
    heap[at] = plateau;
    index[plateau] = at;
  }
}
