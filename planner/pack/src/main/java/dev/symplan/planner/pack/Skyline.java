package dev.symplan.planner.pack;

/**
 * Packs from the bottom up: always to the lowest offset that a buffer can still have, there the
 * buffer of least rank. Space below the skyline is not looked at again.
 *
 * <p>A buffer can have the lowest plateau's height when it lives inside the plateau's sections;
 * where no buffer does, the plateau is raised to its lower neighbour. Each step is a search in a
 * {@link LifetimeTree}, so that a run takes O(n log n) where lifetimes are mostly short.
 */
final class Skyline {
  private final Items items;
  private final LifetimeTree tree;
  private final Plateaus plateaus;
  private final int[] rank;

  Skyline(Items items) {
    this.items = items;
    tree = new LifetimeTree(items.first, items.end);
    plateaus = new Plateaus(items.sections);
    rank = new int[items.count];
  }

  /**
   * Packs all items.
   *
   * @param order the items, those first that are preferred where several could be placed
   * @param offsets receives the offsets, when the height stays within the limit
   * @return the height, or -1 as soon as it would exceed the limit
   */
  long pack(int[] order, long limit, long[] offsets) {
    for (int r = 0; r < order.length; r++) {
      rank[order[r]] = r;
    }
    tree.rank(rank);
    plateaus.reset();
    long top = 0;
    for (int left = order.length; left > 0; ) {
      int plateau = plateaus.lowest();
      int stop = plateaus.end(plateau);
      int found = tree.bestInside(plateau, stop);
      if (found == LifetimeTree.NONE) {
        plateaus.raise(plateau, plateau, stop, plateaus.lowerNeighbour(plateau));
        continue;
      }
      int item = order[found];
      long offset = Item.alignUp(plateaus.height(plateau), items.alignment[item]);
      long end = offset + items.size[item];
      if (end > limit) {
        return -1;
      }
      tree.remove(item);
      offsets[item] = offset;
      plateaus.raise(plateau, items.first[item], items.end[item], end);
      top = Math.max(top, end);
      left--;
    }
    return top;
  }
}
