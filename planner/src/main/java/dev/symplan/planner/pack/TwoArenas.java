package dev.symplan.planner.pack;

import java.util.Arrays;
import java.util.BitSet;

/** Packs buffers into the holes of a first arena, and what is left into a second. */
final class TwoArenas {
  private final Items free;
  private final Items obstacles;
  private final long[] bottoms;
  private final long arena;
  private final PackOptions options;
  private final long[] live;
  private final long lowerBound;

  TwoArenas(
      PackingProblem fixed, long[] bottoms, long arena, PackingProblem free, PackOptions options) {
    var both = fixed.concat(free);
    var sections = Sections.of(both);
    this.obstacles = Items.of(both, sections, 0, fixed.count()).clipped(bottoms, arena);
    this.free = Items.of(both, sections, fixed.count(), both.count());
    this.bottoms = bottoms;
    this.arena = arena;
    this.options = options;
    live = new long[sections.count()];
    long bound = 0;
    for (int s = 0; s < live.length; s++) {
      live[s] = obstacles.live[s] + this.free.live[s];
      bound = Math.max(bound, live[s] - arena);
    }
    lowerBound = bound;
  }

  Packing solve() {
    var filler = new HoleFiller(free, obstacles, bottoms, arena);
    var offsets = new long[free.count];
    long[] best = {};
    long bestHeight = Long.MAX_VALUE;
    for (var order : new Orders(free, live).all()) {
      filler.fill(order.get(), offsets);
      long height = packOutside(offsets, bestHeight);
      if (height < bestHeight) {
        bestHeight = height;
        best = offsets.clone();
      }
      if (height == lowerBound) {
        break;
      }
    }
    var inside = new BitSet();
    for (int i = 0; i < best.length; i++) {
      if (best[i] < 0) {
        best[i] = ~best[i];
      } else {
        inside.set(i);
      }
    }
    return new Packing(best, inside, bestHeight, lowerBound);
  }

  /** Packs what found no hole; its offsets are stored as their complements. */
  private long packOutside(long[] offsets, long enough) {
    var outside = new int[free.count];
    int count = 0;
    for (int i = 0; i < free.count; i++) {
      if (offsets[i] == HoleFiller.OUTSIDE) {
        outside[count++] = i;
      }
    }
    if (count == 0) {
      return 0;
    }
    outside = Arrays.copyOf(outside, count);
    var items = free.part(outside);
    if (items.maxLive() >= enough) {
      return Long.MAX_VALUE;
    }
    var solver = new Solver(items, options);
    solver.solve();
    var packed = solver.offsets();
    for (int k = 0; k < count; k++) {
      offsets[outside[k]] = ~packed[k];
    }
    return solver.height();
  }
}
