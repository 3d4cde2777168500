package dev.symplan.planner.pack;

import java.util.Arrays;

/**
 * Puts items between obstacles that lie at fixed offsets of an arena, as {@link Skyline} does:
 * always to the lowest offset that is left. An obstacle becomes part of the skyline when the
 * skyline has risen to its lower edge; until then it is a ceiling. The arena's end is one for all.
 */
final class HoleFiller {
  /** Where an item stays outside. */
  static final long OUTSIDE = -1;

  private final Items items;
  private final Items obstacles;
  private final long[] bottom;
  private final long arena;
  private final LifetimeTree tree;
  private final LifetimeTree ceilings;
  private final int[] byBottom;
  private final int[] bottomRank;
  private final Plateaus plateaus;
  private final int[] rank;

  /**
   * @param bottom the obstacles' offsets
   * @param arena bytes of the arena
   */
  HoleFiller(Items items, Items obstacles, long[] bottom, long arena) {
    this.items = items;
    this.obstacles = obstacles;
    this.bottom = bottom;
    this.arena = arena;
    tree = new LifetimeTree(items.first, items.end);
    ceilings = new LifetimeTree(obstacles.first, obstacles.end);
    plateaus = new Plateaus(items.sections);
    byBottom = IntSort.sorted(obstacles.count, (a, b) -> Long.compare(bottom[a], bottom[b]));
    bottomRank = new int[obstacles.count];
    for (int r = 0; r < byBottom.length; r++) {
      bottomRank[byBottom[r]] = r;
    }
    rank = new int[items.count];
  }

  /**
   * Fills the holes.
   *
   * @param order the items, those first that are preferred where several could be placed
   * @param offsets receives an offset for each item, {@link #OUTSIDE} where it found none
   * @return whether all items found an offset
   */
  boolean fill(int[] order, long[] offsets) {
    for (int r = 0; r < order.length; r++) {
      int i = order[r];
      rank[i] = items.size[i] <= arena ? r : LifetimeTree.NONE;
    }
    boolean all = tree.rank(rank);
    ceilings.rank(bottomRank);
    plateaus.reset();
    Arrays.fill(offsets, OUTSIDE);
    while (!tree.isEmpty()) {
      int plateau = plateaus.lowest();
      long height = plateaus.height(plateau);
      if (height >= arena) {
        return false;
      }
      int stop = plateaus.end(plateau);
      int obstacle = ceilings.bestTouching(plateau, stop);
      long ceiling = obstacle == LifetimeTree.NONE ? arena : bottom[byBottom[obstacle]];
      if (ceiling == height) {
        int o = byBottom[obstacle];
        ceilings.remove(o);
        plateaus.raise(plateau, obstacles.first[o], obstacles.end[o], height + obstacles.size[o]);
        continue;
      }
      int found = tree.bestInside(plateau, stop, r -> fits(order[r], height, ceiling));
      if (found == LifetimeTree.NONE) {
        long next = Math.min(ceiling, plateaus.lowerNeighbour(plateau));
        plateaus.raise(plateau, plateau, stop, next);
        continue;
      }
      int item = order[found];
      offsets[item] = Item.alignUp(height, items.alignment[item]);
      tree.remove(item);
      plateaus.raise(plateau, items.first[item], items.end[item], offsets[item] + items.size[item]);
    }
    return all;
  }

  private boolean fits(int item, long height, long lowestCeiling) {
    long end = Item.alignUp(height, items.alignment[item]) + items.size[item];
    if (end <= lowestCeiling || end > arena) {
      return end <= arena;
    }
    int obstacle = ceilings.bestTouching(items.first[item], items.end[item]);
    return obstacle == LifetimeTree.NONE || end <= bottom[byBottom[obstacle]];
  }
}
