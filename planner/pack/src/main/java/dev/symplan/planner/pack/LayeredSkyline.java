package dev.symplan.planner.pack;

import java.util.Arrays;

/**
 * Packs large items first, each class of sizes by a {@link HoleFiller} around what was packed
 * before: small items then fill what large ones leave.
 */
final class LayeredSkyline {
  /** As many bits as make one layer of all sizes. */
  static final int ONE_LAYER = 64;

  private final Items items;
  private final Items obstacles;
  private final long[] bottoms;
  private final long largest;

  LayeredSkyline(Items items) {
    this(items, items.subset(new int[0]), new long[0]);
  }

  /**
   * @param obstacles the items that lie in the arena already, in the same sections as the others
   * @param bottoms the obstacles' offsets
   */
  LayeredSkyline(Items items, Items obstacles, long[] bottoms) {
    this.items = items;
    this.obstacles = obstacles;
    this.bottoms = bottoms;
    long max = 1;
    for (long size : items.size) {
      max = Math.max(max, size);
    }
    largest = max;
  }

  /**
   * Packs what fits below a limit.
   *
   * @param order the items, those first that are preferred within a layer
   * @param bits a layer's sizes are within a factor of 2 to this power
   * @param offsets receives the offsets, {@link HoleFiller#OUTSIDE} for what does not fit
   */
  void pack(int[] order, int bits, long limit, long[] offsets) {
    pack(order, bits, limit, offsets, false);
  }

  /**
   * Packs all items below a limit, or gives up where a layer does not fit.
   *
   * @return whether all items fit; if not, the offsets are not complete
   */
  boolean packAll(int[] order, int bits, long limit, long[] offsets) {
    return pack(order, bits, limit, offsets, true);
  }

  private boolean pack(int[] order, int bits, long limit, long[] offsets, boolean all) {
    var layers = layers(bits);
    var packed = new int[items.count];
    int count = 0;
    for (int layer = 0; layer <= log2(largest) / bits; layer++) {
      var chosen = new int[items.count];
      int wanted = 0;
      for (int i : order) {
        if (layers[i] == layer) {
          chosen[wanted++] = i;
        }
      }
      if (wanted == 0) {
        continue;
      }
      chosen = Arrays.copyOf(chosen, wanted);
      var before = Arrays.copyOf(packed, count);
      var offsetsBefore = Arrays.copyOf(bottoms, bottoms.length + count);
      for (int k = 0; k < count; k++) {
        offsetsBefore[bottoms.length + k] = offsets[before[k]];
      }
      var found = new long[wanted];
      var filler =
          new HoleFiller(
              items.subset(chosen), obstacles.concat(items.subset(before)), offsetsBefore, limit);
      boolean fits = filler.fill(IntSort.sorted(wanted, Integer::compare), found);
      if (all && !fits) {
        return false;
      }
      for (int k = 0; k < wanted; k++) {
        offsets[chosen[k]] = found[k];
        if (found[k] != HoleFiller.OUTSIDE) {
          packed[count++] = chosen[k];
        }
      }
    }
    return true;
  }

  private int[] layers(int bits) {
    var layers = new int[items.count];
    for (int i = 0; i < items.count; i++) {
      layers[i] = (log2(largest) - log2(items.size[i])) / bits;
    }
    return layers;
  }

  private static int log2(long size) {
    return 63 - Long.numberOfLeadingZeros(size);
  }
}
