package dev.symplan.planner.pass.order;

import dev.symplan.planner.pass.analysis.IntLists;
import java.util.Optional;

/**
 * The order of the least peak, by dynamic programming over the sets of units that can have run:
 * what is live after a set does not depend on the order in which it ran (Ahn et al., "Ordering
 * Chaos: Memory-Aware Scheduling of Irregularly Wired Neural Networks for Edge Devices", 2020).
 */
public final class ExactOrder {
  private static final int MAX_UNITS = Long.SIZE - 1;

  private final WorkUnits units;
  private final long[] before;

  /** The units that read each storage. */
  private final long[] readers;

  /** The bytes that each unit makes. */
  private final long[] made;

  private ExactOrder(WorkUnits units) {
    this.units = units;
    this.before = sets(units.before(), units.count());
    this.readers = sets(units.readers(), units.storages());
    this.made = new long[units.count()];
    for (int u = 0; u < made.length; u++) {
      for (int i = 0; i < units.makes().size(u); i++) {
        made[u] += units.bytes(units.makes().get(u, i));
      }
    }
  }

  private static long[] sets(IntLists lists, int owners) {
    var sets = new long[owners];
    for (int owner = 0; owner < owners; owner++) {
      for (int i = 0; i < lists.size(owner); i++) {
        sets[owner] |= 1L << lists.get(owner, i);
      }
    }
    return sets;
  }

  /** {@return the best order; none if more than {@code mostSets} sets would have to be kept} */
  public static Optional<int[]> of(WorkUnits units, int mostSets) {
    return units.count() > MAX_UNITS ? Optional.empty() : new ExactOrder(units).search(mostSets);
  }

  private Optional<int[]> search(int mostSets) {
    int count = units.count();
    long all = (1L << count) - 1;
    var reached = new ReachedSets();
    reached.add(0, 0, -1);
    // Sets come in the order of their sizes, so each is final when its turn comes.
    for (int i = 0; i < reached.count(); i++) {
      long set = reached.set(i);
      long held = held(set);
      for (long rest = all & ~set; rest != 0; rest &= rest - 1) {
        int unit = Long.numberOfTrailingZeros(rest);
        if ((before[unit] & ~set) == 0) {
          long after = set | 1L << unit;
          reached.add(after, Math.max(reached.peak(i), held + needs(after, unit)), unit);
        }
      }
      if (reached.count() > mostSets) {
        return Optional.empty();
      }
    }
    var order = new int[count];
    long set = all;
    for (int size = count; size > 0; size--) {
      int last = reached.last(reached.find(set));
      order[size - 1] = last;
      set &= ~(1L << last);
    }
    return Optional.of(order);
  }

  /** The bytes that are live after a set. */
  private long held(long set) {
    long held = 0;
    for (int s = 0; s < readers.length; s++) {
      int maker = units.maker(s);
      held += maker >= 0 && (set & 1L << maker) != 0 && isNeeded(s, set) ? units.bytes(s) : 0;
    }
    return held;
  }

  private boolean isNeeded(int storage, long set) {
    return (readers[storage] & ~set) != 0 || units.escapes(storage);
  }

  /** The bytes that a unit needs beside those that are live before it. */
  private long needs(long after, int unit) {
    return made[unit] - MemoryProfile.inPlace(units, unit, s -> isNeeded(s, after) ? 1 : 0);
  }
}
