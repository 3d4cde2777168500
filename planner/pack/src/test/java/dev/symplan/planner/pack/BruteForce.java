package dev.symplan.planner.pack;

import java.util.ArrayList;

/**
 * The least height by trying all orders: bottom-up in the order of an optimal packing's offsets,
 * each buffer into the first place that is free, gives a packing as low.
 */
final class BruteForce {
  private final PackingProblem problem;
  private final PackingProblem fixed;
  private final long[] fixedOffsets;
  private final long arena;
  private final long[] offsets;
  private final boolean[] second;
  private final boolean[] used;
  private long best = Long.MAX_VALUE;

  private BruteForce(
      PackingProblem fixed, long[] fixedOffsets, long arena, PackingProblem problem) {
    this.fixed = fixed;
    this.fixedOffsets = fixedOffsets;
    this.arena = arena;
    this.problem = problem;
    offsets = new long[problem.count()];
    second = new boolean[problem.count()];
    used = new boolean[problem.count()];
  }

  static long height(PackingProblem problem) {
    return height(PackingProblem.builder().build(), new long[0], 0, problem);
  }

  static long height(
      PackingProblem fixed, long[] fixedOffsets, long arena, PackingProblem problem) {
    var search = new BruteForce(fixed, fixedOffsets, arena, problem);
    search.place(0, 0);
    return search.best;
  }

  private void place(int depth, long height) {
    if (height >= best) {
      return;
    }
    if (depth == problem.count()) {
      best = height;
      return;
    }
    for (int i = 0; i < problem.count(); i++) {
      if (used[i]) {
        continue;
      }
      used[i] = true;
      long size = problem.item(i).paddedSize();
      second[i] = false;
      offsets[i] = firstFit(i);
      if (offsets[i] + size <= arena) {
        place(depth + 1, height);
      }
      second[i] = true;
      offsets[i] = firstFit(i);
      place(depth + 1, Math.max(height, offsets[i] + size));
      used[i] = false;
    }
  }

  private long firstFit(int i) {
    var own = problem.item(i);
    var busy = new ArrayList<long[]>();
    for (int k = 0; k < fixed.count() && !second[i]; k++) {
      if (fixed.item(k).overlaps(own)) {
        long end = fixedOffsets[k] + fixed.item(k).paddedSize();
        busy.add(new long[] {fixedOffsets[k], end});
      }
    }
    for (int j = 0; j < problem.count(); j++) {
      var other = problem.item(j);
      if (j != i && used[j] && second[j] == second[i] && other.overlaps(own)) {
        busy.add(new long[] {offsets[j], offsets[j] + other.paddedSize()});
      }
    }
    busy.sort((a, b) -> Long.compare(a[0], b[0]));
    long at = 0;
    for (var range : busy) {
      if (at + own.paddedSize() <= range[0]) {
        break;
      }
      at = Math.max(at, Item.alignUp(range[1], own.alignment()));
    }
    return at;
  }
}
