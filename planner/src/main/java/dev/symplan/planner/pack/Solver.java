package dev.symplan.planner.pack;

import java.util.List;
import java.util.function.Supplier;

/**
 * Packs items into one arena: one quick pass over all; then, in each component that is higher than
 * need be, other greedy orders, and exact search where there are few enough items.
 */
final class Solver {

  /** Sizes of layers, in powers of two, and the order inside; the best on large graphs first. */
  private record Greedy(int order, int layerBits) {
    static final int NO_LAYERS = 0;
  }

  private static final List<Greedy> GREEDY =
      List.of(
          new Greedy(0, 0),
          new Greedy(1, 8),
          new Greedy(1, 0),
          new Greedy(2, 8),
          new Greedy(0, 8),
          new Greedy(2, 0),
          new Greedy(1, 4),
          new Greedy(0, 4),
          new Greedy(2, 4),
          new Greedy(0, 2),
          new Greedy(1, 2),
          new Greedy(2, 2),
          new Greedy(3, 0),
          new Greedy(4, 0),
          new Greedy(5, 0),
          new Greedy(0, 1),
          new Greedy(1, 1),
          new Greedy(3, 8),
          new Greedy(4, 8),
          new Greedy(5, 8),
          new Greedy(3, 2),
          new Greedy(4, 2),
          new Greedy(5, 2),
          new Greedy(3, 1),
          new Greedy(4, 1));

  private final Items items;
  private final PackOptions options;
  private final long[] offsets;
  private long height;
  private long lowerBound;

  Solver(Items items, PackOptions options) {
    this.items = items;
    this.options = options;
    offsets = new long[items.count];
    lowerBound = items.maxLive();
  }

  void solve() {
    if (items.count == 0) {
      return;
    }
    var order = new Orders(items, items.live).all().getFirst().get();
    height = new Skyline(items).pack(order, Long.MAX_VALUE, offsets);
    long target = options.target(lowerBound);
    if (height <= target) {
      return;
    }
    long budget = options.searchSteps();
    height = 0;
    for (var component : items.components()) {
      var part = new Part(component, target, budget);
      part.improve();
      budget = part.budget;
      height = Math.max(height, part.best);
      lowerBound = Math.max(lowerBound, part.bound);
    }
  }

  /** One component. */
  private final class Part {
    final int[] positions;
    final long target;
    long budget;
    long best;
    long bound;

    Part(int[] positions, long target, long budget) {
      this.positions = positions;
      this.target = target;
      this.budget = budget;
      for (int i : positions) {
        best = Math.max(best, offsets[i] + items.size[i]);
      }
    }

    void improve() {
      if (best <= target) {
        return;
      }
      var own = items.part(positions);
      var orders = new Orders(own, own.live).all();
      greedy(own, orders);
      if (best > target && SearchPortfolio.isSmallEnough(own)) {
        var search = new SearchPortfolio(own, orders, best, target, budget);
        search.solve(options.capacity().isPresent());
        budget = search.stepsLeft();
        bound = search.lowerBound();
        if (search.height() < best) {
          keep(search.offsets(), search.height());
        }
      }
    }

    private void greedy(Items own, List<Supplier<int[]>> orders) {
      var skyline = new Skyline(own);
      var layered = new LayeredSkyline(own);
      var trial = new long[own.count];
      for (var way : GREEDY) {
        var order = orders.get(way.order()).get();
        long reached =
            way.layerBits() == Greedy.NO_LAYERS
                ? skyline.pack(order, best - 1, trial)
                : layered.pack(order, way.layerBits(), best - 1, trial);
        if (reached >= 0) {
          keep(trial, reached);
        }
        if (best <= target) {
          return;
        }
      }
    }

    private void keep(long[] found, long reached) {
      best = reached;
      for (int k = 0; k < positions.length; k++) {
        offsets[positions[k]] = found[k];
      }
    }
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
