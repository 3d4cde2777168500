package dev.symplan.planner.pack;

/** Orders in which greedy methods prefer buffers. */
final class Orders {
  /** How many orders there are. */
  static final int COUNT = 6;

  private static final int CROWD = 0;
  private static final int AREA = 1;
  private static final int WIDTH = 2;
  private static final int SIZE = 3;

  private final Items items;
  private final double[] area;

  /** The bytes of the largest section that each item crosses. */
  private final long[] crowd;

  /**
   * @param live bytes live in each section, of these items and of others that are in their way
   */
  Orders(Items items, long[] live) {
    this.items = items;
    area = new double[items.count];
    crowd = new long[items.count];
    var tree = maxTree(live);
    for (int i = 0; i < items.count; i++) {
      area[i] = (double) items.size[i] * (items.end[i] - items.first[i]);
      crowd[i] = max(tree, items.first[i], items.end[i]);
    }
  }

  private static long[] maxTree(long[] leaves) {
    int n = leaves.length;
    var tree = new long[2 * n];
    System.arraycopy(leaves, 0, tree, n, n);
    for (int node = n - 1; node >= 1; node--) {
      tree[node] = Math.max(tree[2 * node], tree[2 * node + 1]);
    }
    return tree;
  }

  private static long max(long[] tree, int from, int to) {
    int n = tree.length / 2;
    long max = 0;
    int l = from + n;
    int r = to + n;
    while (l < r) {
      if ((l & 1) == 1) {
        max = Math.max(max, tree[l++]);
      }
      if ((r & 1) == 1) {
        max = Math.max(max, tree[--r]);
      }
      l >>= 1;
      r >>= 1;
    }
    return max;
  }

  /**
   * {@return the items in one of the orders}
   *
   * @param order 0 to {@link #COUNT} - 1, those that are best on graphs of models first
   */
  int[] get(int order) {
    return switch (order) {
      case 0 -> by(CROWD, AREA, WIDTH);
      case 1 -> by(CROWD, SIZE, WIDTH);
      case 2 -> by(CROWD, WIDTH, SIZE);
      case 3 -> by(AREA, SIZE, WIDTH);
      case 4 -> by(SIZE, WIDTH, CROWD);
      case 5 -> by(WIDTH, SIZE, CROWD);
      default -> throw new IllegalArgumentException("order " + order);
    };
  }

  private int[] by(int primary, int secondary, int tertiary) {
    return IntSort.sorted(
        items.count,
        (a, b) -> {
          int c = compare(primary, a, b);
          if (c == 0) {
            c = compare(secondary, a, b);
          }
          return c == 0 ? compare(tertiary, a, b) : c;
        });
  }

  private int compare(int criterion, int a, int b) {
    return switch (criterion) {
      case CROWD -> Long.compare(crowd[b], crowd[a]);
      case AREA -> Double.compare(area[b], area[a]);
      case WIDTH -> Integer.compare(items.end[b] - items.first[b], items.end[a] - items.first[a]);
      case SIZE -> Long.compare(items.size[b], items.size[a]);
      default -> throw new IllegalArgumentException();
    };
  }
}
