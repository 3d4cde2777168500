package dev.symplan.planner.pass.order;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/**
 * The order of the least peak, by dynamic programming over the sets of units that can have run:
 * what is live after a set does not depend on the order in which it ran (Ahn et al., "Ordering
 * Chaos: Memory-Aware Scheduling of Irregularly Wired Neural Networks for Edge Devices", 2020).
 */
public final class ExactOrder {
  private static final int MAX_UNITS = Long.SIZE - 1;

  /** How a set is reached best: its peak, and the unit that ran last. */
  private record Reached(long peak, int last) {}

  private final WorkUnits units;
  private final long[] before;

  private ExactOrder(WorkUnits units) {
    this.units = units;
    this.before = new long[units.count()];
    for (int u = 0; u < before.length; u++) {
      for (int k = 0; k < units.before().size(u); k++) {
        before[u] |= 1L << units.before().get(u, k);
      }
    }
  }

  /** {@return the best order; none if more than {@code mostSets} sets would have to be kept} */
  public static Optional<int[]> of(WorkUnits units, int mostSets) {
    return units.count() > MAX_UNITS ? Optional.empty() : new ExactOrder(units).search(mostSets);
  }

  private Optional<int[]> search(int mostSets) {
    int count = units.count();
    var layers = new ArrayList<Map<Long, Reached>>();
    layers.add(Map.of(0L, new Reached(0, -1)));
    int kept = 1;
    for (int size = 0; size < count; size++) {
      var next = new LinkedHashMap<Long, Reached>();
      for (var entry : layers.get(size).entrySet()) {
        long set = entry.getKey();
        long held = held(set);
        for (int u = 0; u < count; u++) {
          if ((set & 1L << u) == 0 && (before[u] & ~set) == 0) {
            long peak = Math.max(entry.getValue().peak(), held + needs(set, u));
            next.merge(set | 1L << u, new Reached(peak, u), (a, b) -> b.peak() < a.peak() ? b : a);
          }
        }
      }
      kept += next.size();
      if (kept > mostSets) {
        return Optional.empty();
      }
      layers.add(next);
    }
    var order = new int[count];
    long set = (1L << count) - 1;
    for (int size = count; size > 0; size--) {
      var reached = Objects.requireNonNull(layers.get(size).get(set));
      order[size - 1] = reached.last();
      set &= ~(1L << reached.last());
    }
    return Optional.of(order);
  }

  private long held(long set) {
    long held = 0;
    for (int s = 0; s < units.storages(); s++) {
      if (units.maker(s) >= 0 && (set & 1L << units.maker(s)) != 0 && usesLeft(s, set) > 0) {
        held += units.bytes(s);
      }
    }
    return held;
  }

  private int usesLeft(int storage, long set) {
    int left = units.escapes(storage) ? 1 : 0;
    for (int i = 0; i < units.readers().size(storage); i++) {
      left += (set & 1L << units.readers().get(storage, i)) == 0 ? 1 : 0;
    }
    return left;
  }

  /** What a unit needs beside what is live after a set. */
  private long needs(long set, int unit) {
    long made = 0;
    for (int i = 0; i < units.makes().size(unit); i++) {
      made += units.bytes(units.makes().get(unit, i));
    }
    return made - MemoryProfile.inPlace(units, unit, s -> usesLeft(s, set | 1L << unit));
  }
}
