package dev.symplan.planner.pack;

import java.util.Random;

/**
 * Orders for one search after another, none like those before: by a criterion, with each item's
 * value changed a little at random. A search that chose wrongly at its start seldom recovers, so
 * that starting again differently finds more than going on.
 *
 * <p>The same for the same items everywhere: {@link Random} is specified to the bit, and so are the
 * operations used.
 */
final class ShakenOrders {
  private static final int CRITERIA = 5;

  /** By which parts of themselves values change at most. */
  private static final double[] SHAKES = {0.2, 0.5};

  private final Items items;
  private final Random random = new Random(1);
  private int given;

  ShakenOrders(Items items) {
    this.items = items;
  }

  int[] next() {
    int criterion = given % CRITERIA;
    double shake = SHAKES[given / CRITERIA % SHAKES.length];
    given++;
    var value = new double[items.count];
    for (int i = 0; i < items.count; i++) {
      double factor = 1 + shake * (2 * random.nextDouble() - 1);
      value[i] = factor * value(criterion, items.size[i], items.end[i] - items.first[i]);
    }
    return IntSort.sorted(items.count, (a, b) -> Double.compare(value[b], value[a]));
  }

  private static double value(int criterion, double size, double width) {
    return switch (criterion) {
      case 0 -> size;
      case 1 -> size * Math.sqrt(width);
      case 2 -> size * size * width;
      case 3 -> width;
      case 4 -> size * width;
      default -> throw new IllegalArgumentException("criterion " + criterion);
    };
  }
}
