package dev.symplan.planner.pack;

import java.util.Arrays;
import java.util.BitSet;

/**
 * Packs buffers into the holes of a first arena, and what is left into a second: greedily in
 * several ways, then with {@link Repair} and {@link Ejection} on both arenas seen as one.
 */
final class TwoArenas {
  private final Items free;
  private final Items obstacles;
  private final long[] bottoms;
  private final long arena;
  private final PackOptions options;
  private final long[] live;
  private long lowerBound;

  /** Offsets of the best packing: {@link HoleFiller#OUTSIDE} where not in the first arena. */
  private long[] inside = {};

  /** Offsets in the second arena, of what is not in the first. */
  private long[] outside = {};

  private long height = Long.MAX_VALUE;

  TwoArenas(
      PackingProblem fixed, long[] bottoms, long arena, PackingProblem free, PackOptions options) {
    var both = fixed.concat(free);
    var sections = Sections.of(both);
    this.obstacles = Items.of(both, sections, 0, fixed.count()).clipped(bottoms, arena);
    this.free = Items.of(both, sections, fixed.count(), both.count());
    this.bottoms = bottoms;
    this.arena = arena;
    this.options = options;
    live = obstacles.live();
    long bound = 0;
    var freeLive = this.free.live();
    for (int s = 0; s < live.length; s++) {
      live[s] += freeLive[s];
      bound = Math.max(bound, live[s] - arena);
    }
    lowerBound = Math.max(bound, maxLiveOfLarge());
  }

  /** The peak of the items that are larger than the first arena: they are in the second. */
  private long maxLiveOfLarge() {
    var large = new int[free.count];
    int count = 0;
    for (int i = 0; i < free.count; i++) {
      if (free.size[i] > arena) {
        large[count++] = i;
      }
    }
    return free.subset(Arrays.copyOf(large, count)).maxLive();
  }

  Packing solve() {
    long target = options.target(lowerBound);
    var orders = new Orders(free, live);
    var filler = new LayeredSkyline(free, obstacles, bottoms);
    greedy(Greedy.FIRST, orders, filler);
    long work = 0;
    for (var way : Greedy.OTHERS) {
      work += obstacles.count + free.count;
      if (height <= target || work > options.greedyItems()) {
        break;
      }
      greedy(way, orders, filler);
    }
    long steps = options.searchSteps(lowerBound);
    if (height > target && steps > 0) {
      improve(target, steps);
    }
    var offsets = inside.clone();
    var inFirst = new BitSet();
    for (int i = 0; i < offsets.length; i++) {
      inFirst.set(i, inside[i] != HoleFiller.OUTSIDE);
      offsets[i] = inFirst.get(i) ? inside[i] : outside[i];
    }
    return new Packing(offsets, inFirst, height, lowerBound);
  }

  private void greedy(Greedy way, Orders orders, LayeredSkyline filler) {
    var trial = new long[free.count];
    filler.pack(orders.get(way.order()), way.layerBits(), arena, trial);
    var left = new int[free.count];
    int count = 0;
    for (int i = 0; i < free.count; i++) {
      if (trial[i] == HoleFiller.OUTSIDE) {
        left[count++] = i;
      }
    }
    if (count == 0) {
      height = 0;
      inside = trial;
      return;
    }
    var rest = free.part(Arrays.copyOf(left, count));
    if (rest.maxLive() >= height) {
      return;
    }
    var solver = new Solver(rest, options.withSearchSteps(0));
    solver.solve();
    if (solver.height() < height) {
      height = solver.height();
      inside = trial;
      outside = new long[free.count];
      for (int k = 0; k < count; k++) {
        outside[left[k]] = solver.offsets()[k];
      }
    }
  }

  /** Improves on the greedy packing, in both arenas seen as one, the second above the first. */
  private void improve(long target, long allSteps) {
    long alignment = 1;
    for (long a : free.alignment) {
      alignment = Math.max(alignment, a);
    }
    var gap = new Gap(arena, Item.alignUp(arena, alignment));
    var all = obstacles.concat(free);
    var offsets = Arrays.copyOf(bottoms, all.count);
    for (int i = 0; i < free.count; i++) {
      offsets[obstacles.count + i] =
          inside[i] == HoleFiller.OUTSIDE ? gap.end() + outside[i] : inside[i];
    }
    var immovable = new BitSet();
    immovable.set(0, obstacles.count);
    boolean small = SearchPortfolio.isSmallEnough(all);
    long steps = small ? allSteps / 2 : allSteps / 4;
    var repair = new Repair(all, offsets, immovable, gap, steps, options.stop());
    repair.lower(gap.end() + target);
    long left = allSteps - steps + repair.stepsLeft();
    steps = small ? left / 3 : left;
    var ejection = new Ejection(all, offsets, immovable, gap, steps, options.stop());
    ejection.lower(gap.end() + target);
    left += ejection.stepsLeft() - steps;
    split(offsets, gap);
    if (small && height > target) {
      var pins = Search.free(all.count);
      System.arraycopy(bottoms, 0, pins, 0, bottoms.length);
      var search =
          new SearchPortfolio(
              all, pins, gap, gap.end() + height, gap.end() + target, left, options.stop());
      search.solve(options.capacity().isPresent());
      lowerBound = Math.max(lowerBound, search.lowerBound() - gap.end());
      if (search.height() < gap.end() + height) {
        split(search.offsets(), gap);
      }
    }
  }

  private void split(long[] offsets, Gap gap) {
    height = 0;
    for (int i = 0; i < free.count; i++) {
      long offset = offsets[obstacles.count + i];
      boolean second = offset >= gap.end();
      inside[i] = second ? HoleFiller.OUTSIDE : offset;
      outside[i] = second ? offset - gap.end() : 0;
      if (second) {
        height = Math.max(height, outside[i] + free.size[i]);
      }
    }
  }
}
