package dev.symplan.planner.pack;

import java.util.BitSet;

/**
 * Packs items into one arena: one quick pass over all; then, in each component that is higher than
 * need be, other greedy ways, then {@link Repair} and {@link Ejection} of what stands out, and
 * exact search where there are few enough items.
 */
final class Solver {
  private final Items items;
  private final PackOptions options;
  private final long[] offsets;
  private long height;
  private long lowerBound;
  private long stepsLeft;

  Solver(Items items, PackOptions options) {
    this.items = items;
    this.options = options;
    offsets = new long[items.count];
    lowerBound = items.maxLive();
    stepsLeft = options.searchSteps(lowerBound);
  }

  void solve() {
    if (items.count == 0) {
      return;
    }
    var order = new Orders(items, items.live()).get(Greedy.FIRST.order());
    height = new Skyline(items).pack(order, Long.MAX_VALUE, offsets);
    long target = options.target(lowerBound);
    if (height <= target) {
      return;
    }
    height = 0;
    for (var component : items.components()) {
      height = Math.max(height, improve(component, target));
    }
  }

  /** {@return the component's height} */
  private long improve(int[] component, long target) {
    long best = 0;
    for (int i : component) {
      best = Math.max(best, offsets[i] + items.size[i]);
    }
    if (best <= target) {
      return best;
    }
    var own = items.part(component);
    var packed = new long[own.count];
    for (int k = 0; k < component.length; k++) {
      packed[k] = offsets[component[k]];
    }
    best = greedy(own, best, target, packed);
    boolean small = SearchPortfolio.isSmallEnough(own);
    if (best > target && stepsLeft > 0) {
      long steps = stepsLeft / 4;
      var repair = new Repair(own, packed, new BitSet(), Gap.NONE, steps, options.stop());
      repair.lower(target);
      stepsLeft -= steps - repair.stepsLeft();
      best = own.height(packed);
    }
    if (best > target && stepsLeft > 0) {
      long steps = small ? stepsLeft / 3 : stepsLeft;
      var ejection = new Ejection(own, packed, new BitSet(), Gap.NONE, steps, options.stop());
      ejection.lower(target);
      stepsLeft -= steps - ejection.stepsLeft();
      best = own.height(packed);
    }
    if (best > target && small && stepsLeft > 0) {
      best = search(own, best, target, packed);
    }
    for (int k = 0; k < component.length; k++) {
      offsets[component[k]] = packed[k];
    }
    return best;
  }

  private long greedy(Items own, long reached, long target, long[] packed) {
    var orders = new Orders(own, own.live());
    var skyline = new Skyline(own);
    var layered = new LayeredSkyline(own);
    var trial = new long[own.count];
    long best = reached;
    long work = 0;
    for (var way : Greedy.OTHERS) {
      work += own.count;
      if (best <= target || work > options.greedyItems()) {
        break;
      }
      var order = orders.get(way.order());
      boolean lower =
          way.isLayered()
              ? layered.packAll(order, way.layerBits(), best - 1, trial)
              : skyline.pack(order, best - 1, trial) >= 0;
      if (lower) {
        best = own.height(trial);
        System.arraycopy(trial, 0, packed, 0, trial.length);
      }
    }
    return best;
  }

  private long search(Items own, long reached, long target, long[] packed) {
    var search =
        new SearchPortfolio(
            own, Search.free(own.count), Gap.NONE, reached, target, stepsLeft, options.stop());
    search.solve(options.capacity().isPresent());
    stepsLeft = search.stepsLeft();
    lowerBound = Math.max(lowerBound, search.lowerBound());
    if (search.height() < reached) {
      System.arraycopy(search.offsets(), 0, packed, 0, packed.length);
    }
    return search.height();
  }

  long[] offsets() {
    return offsets;
  }

  long height() {
    return height;
  }

  long lowerBound() {
    return lowerBound;
  }
}
