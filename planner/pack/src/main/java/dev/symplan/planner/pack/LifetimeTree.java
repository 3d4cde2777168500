package dev.symplan.planner.pack;

import java.util.Arrays;
import java.util.function.IntPredicate;

/**
 * Items that live in ranges of sections, each with a rank; finds the item of least rank among those
 * inside a range, or among those that touch it. A k-d tree over (first, end): queries visit about
 * log n nodes where ranges are short, and O(√n) at worst.
 *
 * <p>The shape is kept when ranks change ({@link #rank}), and items can be removed.
 */
final class LifetimeTree {
  static final int NONE = Integer.MAX_VALUE;

  private static final int LEAF = 8;

  private final int[] first;
  private final int[] end;

  /** Items, a leaf's together. */
  private final int[] order;

  private final int leaves;

  /** Where in the order each leaf begins, and after the last where that ends. */
  private final int[] leafBegin;

  private final int[] minFirst;
  private final int[] maxFirst;
  private final int[] minEnd;
  private final int[] maxEnd;

  /** The least rank below each node; {@link #NONE} where all items are removed. */
  private final int[] best;

  private final int[] leafOf;
  private final int[] rankOf;
  private final int[] stack = new int[128];

  LifetimeTree(int[] first, int[] end) {
    this.first = first;
    this.end = end;
    int n = first.length;
    order = new int[n];
    for (int i = 0; i < n; i++) {
      order[i] = i;
    }
    int wanted = Math.max(1, (n + LEAF - 1) / LEAF);
    leaves = wanted == 1 ? 1 : Integer.highestOneBit(wanted - 1) << 1;
    leafBegin = new int[leaves + 1];
    leafBegin[leaves] = n;
    minFirst = new int[2 * leaves];
    maxFirst = new int[2 * leaves];
    minEnd = new int[2 * leaves];
    maxEnd = new int[2 * leaves];
    best = new int[2 * leaves];
    leafOf = new int[n];
    rankOf = new int[n];
    build(1, 0, n);
  }

  private void build(int node, int from, int to) {
    if (node >= leaves) {
      leafBegin[node - leaves] = from;
      int minF = Integer.MAX_VALUE;
      int maxF = Integer.MIN_VALUE;
      int minE = Integer.MAX_VALUE;
      int maxE = Integer.MIN_VALUE;
      for (int k = from; k < to; k++) {
        int i = order[k];
        leafOf[i] = node;
        minF = Math.min(minF, first[i]);
        maxF = Math.max(maxF, first[i]);
        minE = Math.min(minE, end[i]);
        maxE = Math.max(maxE, end[i]);
      }
      setBox(node, minF, maxF, minE, maxE);
      return;
    }
    int middle = split(node, from, to);
    build(2 * node, from, middle);
    build(2 * node + 1, middle, to);
    int l = 2 * node;
    int r = l + 1;
    setBox(
        node,
        Math.min(minFirst[l], minFirst[r]),
        Math.max(maxFirst[l], maxFirst[r]),
        Math.min(minEnd[l], minEnd[r]),
        Math.max(maxEnd[l], maxEnd[r]));
  }

  private void setBox(int node, int minF, int maxF, int minE, int maxE) {
    minFirst[node] = minF;
    maxFirst[node] = maxF;
    minEnd[node] = minE;
    maxEnd[node] = maxE;
  }

  /** Halves alternately by first and by end. */
  private int split(int node, int from, int to) {
    int middle = from + (to - from) / 2;
    if (from < to) {
      int depth = 31 - Integer.numberOfLeadingZeros(node);
      select((depth & 1) == 0 ? first : end, from, to - 1, middle);
    }
    return middle;
  }

  private void select(int[] key, int from, int to, int k) {
    int lo = from;
    int hi = to;
    while (lo < hi) {
      int a = key[order[lo]];
      int b = key[order[(lo + hi) >>> 1]];
      int c = key[order[hi]];
      int pivot = Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
      int i = lo;
      int j = hi;
      while (i <= j) {
        while (key[order[i]] < pivot) {
          i++;
        }
        while (key[order[j]] > pivot) {
          j--;
        }
        if (i <= j) {
          int swap = order[i];
          order[i++] = order[j];
          order[j--] = swap;
        }
      }
      if (k <= j) {
        hi = j;
      } else if (k >= i) {
        lo = i;
      } else {
        return;
      }
    }
  }

  /**
   * Gives every item its rank, {@link #NONE} for an item that is not in the tree.
   *
   * @return whether all items are in the tree
   */
  boolean rank(int[] ranks) {
    Arrays.fill(best, NONE);
    boolean all = true;
    for (int i = 0; i < ranks.length; i++) {
      rankOf[i] = ranks[i];
      all &= ranks[i] != NONE;
      best[leafOf[i]] = Math.min(best[leafOf[i]], ranks[i]);
    }
    for (int node = leaves - 1; node >= 1; node--) {
      best[node] = Math.min(best[2 * node], best[2 * node + 1]);
    }
    return all;
  }

  boolean isEmpty() {
    return best[1] == NONE;
  }

  void remove(int item) {
    int old = rankOf[item];
    rankOf[item] = NONE;
    int node = leafOf[item];
    if (best[node] != old) {
      return;
    }
    int least = NONE;
    for (int k = leafBegin[node - leaves], to = leafBegin[node + 1 - leaves]; k < to; k++) {
      least = Math.min(least, rankOf[order[k]]);
    }
    best[node] = least;
    while (node > 1) {
      least = Math.min(best[node], best[node ^ 1]);
      node >>= 1;
      if (best[node] == least) {
        return;
      }
      best[node] = least;
    }
  }

  /** {@return the least rank of an item inside {@code [from, to)}, or {@link #NONE}} */
  int bestInside(int from, int to) {
    int found = NONE;
    int depth = 0;
    stack[depth++] = 1;
    while (depth > 0) {
      int node = stack[--depth];
      if (best[node] >= found || maxFirst[node] < from || minEnd[node] > to) {
        continue;
      }
      if (minFirst[node] >= from && maxEnd[node] <= to) {
        found = best[node];
      } else if (node >= leaves) {
        for (int k = leafBegin[node - leaves], stop = leafBegin[node + 1 - leaves]; k < stop; k++) {
          int i = order[k];
          if (rankOf[i] < found && first[i] >= from && end[i] <= to) {
            found = rankOf[i];
          }
        }
      } else {
        depth = pushChildren(node, depth);
      }
    }
    return found;
  }

  /** {@return the least rank of an item inside {@code [from, to)} that passes, or {@link #NONE}} */
  int bestInside(int from, int to, IntPredicate passes) {
    int found = NONE;
    int depth = 0;
    stack[depth++] = 1;
    while (depth > 0) {
      int node = stack[--depth];
      if (best[node] >= found || maxFirst[node] < from || minEnd[node] > to) {
        continue;
      }
      if (node < leaves) {
        depth = pushChildren(node, depth);
        continue;
      }
      for (int k = leafBegin[node - leaves], stop = leafBegin[node + 1 - leaves]; k < stop; k++) {
        int i = order[k];
        if (rankOf[i] < found && first[i] >= from && end[i] <= to && passes.test(rankOf[i])) {
          found = rankOf[i];
        }
      }
    }
    return found;
  }

  /** {@return the least rank of an item that is live somewhere in {@code [from, to)}} */
  int bestTouching(int from, int to) {
    int found = NONE;
    int depth = 0;
    stack[depth++] = 1;
    while (depth > 0) {
      int node = stack[--depth];
      if (best[node] >= found || minFirst[node] >= to || maxEnd[node] <= from) {
        continue;
      }
      if (maxFirst[node] < to && minEnd[node] > from) {
        found = best[node];
      } else if (node >= leaves) {
        for (int k = leafBegin[node - leaves], stop = leafBegin[node + 1 - leaves]; k < stop; k++) {
          int i = order[k];
          if (rankOf[i] < found && first[i] < to && end[i] > from) {
            found = rankOf[i];
          }
        }
      } else {
        depth = pushChildren(node, depth);
      }
    }
    return found;
  }

  /**
   * {@return the items that are live somewhere in {@code [from, to)}, by their positions; only some
   * of them where there are more than a limit}
   */
  int[] touching(int from, int to, int limit) {
    var found = new int[16];
    int count = 0;
    int depth = 0;
    stack[depth++] = 1;
    while (depth > 0 && count <= limit) {
      int node = stack[--depth];
      if (minFirst[node] >= to || maxEnd[node] <= from) {
        continue;
      }
      if (node < leaves) {
        stack[depth++] = 2 * node;
        stack[depth++] = 2 * node + 1;
        continue;
      }
      for (int k = leafBegin[node - leaves], stop = leafBegin[node + 1 - leaves]; k < stop; k++) {
        int i = order[k];
        if (first[i] < to && end[i] > from) {
          if (count == found.length) {
            found = Arrays.copyOf(found, 2 * count);
          }
          found[count++] = i;
        }
      }
    }
    found = Arrays.copyOf(found, count);
    Arrays.sort(found);
    return found;
  }

  /** The better child is looked at first, so that it prunes the other. */
  private int pushChildren(int node, int depth) {
    int better = best[2 * node] <= best[2 * node + 1] ? 2 * node : 2 * node + 1;
    stack[depth] = better ^ 1;
    stack[depth + 1] = better;
    return depth + 2;
  }
}
