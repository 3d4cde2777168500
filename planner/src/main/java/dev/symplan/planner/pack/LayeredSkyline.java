package dev.symplan.planner.pack;

import java.util.Arrays;

/**
 * Packs large items first, each class of sizes by a {@link HoleFiller} around the classes before:
 * small items then fill what large ones leave.
 */
final class LayeredSkyline {
  private final Items items;
  private final long largest;

  LayeredSkyline(Items items) {
    this.items = items;
    long max = 0;
    for (long size : items.size) {
      max = Math.max(max, size);
    }
    largest = max;
  }

  /**
   * Packs all items.
   *
   * @param order the items, those first that are preferred within a layer
   * @param bits a layer's sizes are within a factor of 2 to this power
   * @param offsets receives the offsets, when the height stays within the limit
   * @return the height, or -1 where it would exceed the limit
   */
  long pack(int[] order, int bits, long limit, long[] offsets) {
    int n = items.count;
    var layerOf = new int[n];
    int layers = 0;
    for (int i = 0; i < n; i++) {
      layerOf[i] = (log2(largest) - log2(items.size[i])) / bits;
      layers = Math.max(layers, layerOf[i] + 1);
    }
    var packed = new int[n];
    int count = 0;
    for (int layer = 0; layer < layers; layer++) {
      var bottoms = new long[count];
      for (int k = 0; k < count; k++) {
        bottoms[k] = offsets[packed[k]];
      }
      var obstacles = items.subset(Arrays.copyOf(packed, count));
      int before = count;
      for (int i : order) {
        if (layerOf[i] == layer) {
          packed[count++] = i;
        }
      }
      var chosen = Arrays.copyOfRange(packed, before, count);
      var found = new long[chosen.length];
      var filler = new HoleFiller(items.subset(chosen), obstacles, bottoms, limit);
      if (!filler.fill(IntSort.sorted(chosen.length, Integer::compare), found)) {
        return -1;
      }
      for (int k = 0; k < chosen.length; k++) {
        offsets[chosen[k]] = found[k];
      }
    }
    return items.height(offsets);
  }

  private static int log2(long size) {
    return 63 - Long.numberOfLeadingZeros(size);
  }
}
