package dev.symplan.planner.pass.order;

import com.google.common.primitives.ImmutableIntArray;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Improves an order where it needs the most memory, and leaves the rest as it is: what is live
 * there goes, where that helps, by moving the units that still need it ahead of the peak, or the
 * units that make it after the peak. Again, until the peak does not go down.
 */
public final class PeakDescent {
  /** Units that are moved together at most, and storages that are looked at in one round. */
  private static final int MAX_UNITS = 64;

  private static final int MAX_STORAGES = 256;

  /** Moves that are tried one at a time where all of them together do not help. */
  private static final int MAX_ALONE = 4;

  /** Units that went across the peak together: ahead of it, or after. */
  private record Move(ImmutableIntArray units, boolean hoists) {}

  private final WorkUnits units;
  private final int[] givenReaders;

  /** The state of one round: what runs before the peak, and how many uses of each storage do. */
  private final boolean[] early;

  private final int[] earlyReaders;

  private PeakDescent(WorkUnits units) {
    this.units = units;
    this.early = new boolean[units.count()];
    this.givenReaders = new int[units.storages()];
    this.earlyReaders = new int[units.storages()];
    Arrays.setAll(givenReaders, s -> units.readers().size(s));
  }

  /**
   * @param work how many units may be looked at, over all rounds
   */
  public static int[] from(WorkUnits units, int[] order, long work) {
    var descent = new PeakDescent(units);
    var best = order;
    var profile = MemoryProfile.of(units, best);
    for (long rounds = work / Math.max(1, order.length); rounds > 0; rounds--) {
      var next = descent.lower(best, profile);
      if (next.isEmpty()) {
        break;
      }
      best = next.get();
      profile = MemoryProfile.of(units, best);
    }
    return best;
  }

  /** {@return an order with a lower peak, if moving units across the peak gives one} */
  private Optional<int[]> lower(int[] order, MemoryProfile profile) {
    if (order.length == 0) {
      return Optional.empty();
    }
    int peak = order[profile.at()];
    split(order, profile.at());
    var moves = new ArrayList<Move>();
    for (int storage : liveAt(peak)) {
      move(storage, peak).ifPresent(moves::add);
    }
    if (moves.isEmpty()) {
      return Optional.empty();
    }
    var all = apart(order, peak);
    if (MemoryProfile.of(units, all).isBelow(profile)) {
      return Optional.of(all);
    }
    for (var move : moves.subList(0, Math.min(MAX_ALONE, moves.size()))) {
      split(order, profile.at());
      if (alone(move, peak)) {
        var one = apart(order, peak);
        if (MemoryProfile.of(units, one).isBelow(profile)) {
          return Optional.of(one);
        }
      }
    }
    return Optional.empty();
  }

  private void split(int[] order, int at) {
    Arrays.fill(early, false);
    Arrays.fill(earlyReaders, 0);
    for (int position = 0; position < at; position++) {
      flip(order[position]);
    }
  }

  private void flip(int unit) {
    early[unit] = !early[unit];
    int change = early[unit] ? 1 : -1;
    for (int i = 0; i < units.reads().size(unit); i++) {
      earlyReaders[units.reads().get(unit, i)] += change;
    }
  }

  /** The largest storages that are live at the peak, but not used there. */
  private List<Integer> liveAt(int peak) {
    var used = new BitSet();
    for (int i = 0; i < units.reads().size(peak); i++) {
      used.set(units.reads().get(peak, i));
    }
    return IntStream.range(0, units.storages())
        .filter(s -> isLive(s) && !used.get(s))
        .boxed()
        .sorted(Comparator.<Integer>comparingLong(units::bytes).reversed())
        .limit(MAX_STORAGES)
        .toList();
  }

  private boolean isLive(int storage) {
    return units.maker(storage) >= 0
        && early[units.maker(storage)]
        && (units.escapes(storage) || earlyReaders[storage] < givenReaders[storage]);
  }

  /** Moves what needs the storage, or what makes it, across the peak if that leaves less there. */
  private Optional<Move> move(int storage, int peak) {
    if (!isLive(storage)) {
      return Optional.empty();
    }
    var seeds = new ArrayList<Integer>();
    if (!units.escapes(storage)) {
      for (int i = 0; i < givenReaders[storage]; i++) {
        seeds.add(units.readers().get(storage, i));
      }
      seeds.removeIf(unit -> early[unit]);
    }
    if (!seeds.isEmpty()) {
      var hoisted = closure(seeds, peak, true);
      if (hoisted.isPresent() && flipIfLess(hoisted.get())) {
        return Optional.of(new Move(hoisted.get(), true));
      }
    }
    var sunk = closure(List.of(units.maker(storage)), peak, false);
    return sunk.isPresent() && flipIfLess(sunk.get())
        ? Optional.of(new Move(sunk.get(), false))
        : Optional.empty();
  }

  /** By itself, a move may need other units along than after other moves. */
  private boolean alone(Move move, int peak) {
    var seeds = move.units().stream().filter(u -> early[u] != move.hoists()).boxed().toList();
    var along = closure(seeds, peak, move.hoists());
    return along.isPresent() && flipIfLess(along.get());
  }

  /** {@return the units that must move with others; none if the peak, or too many, would} */
  private Optional<ImmutableIntArray> closure(List<Integer> seeds, int peak, boolean hoist) {
    var along = hoist ? units.before() : units.after();
    var found = new ArrayList<Integer>();
    var seen = new BitSet();
    var queue = new ArrayDeque<Integer>(seeds);
    seeds.forEach(seen::set);
    while (!queue.isEmpty()) {
      int unit = queue.remove();
      if (unit == peak || found.size() == MAX_UNITS) {
        return Optional.empty();
      }
      found.add(unit);
      for (int k = 0; k < along.size(unit); k++) {
        int other = along.get(unit, k);
        boolean moves = other == peak || early[other] != hoist;
        if (moves && !seen.get(other)) {
          seen.set(other);
          queue.add(other);
        }
      }
    }
    return Optional.of(ImmutableIntArray.copyOf(found));
  }

  private boolean flipIfLess(ImmutableIntArray moved) {
    var touched = new BitSet();
    for (int unit : moved.asList()) {
      for (int i = 0; i < units.makes().size(unit); i++) {
        touched.set(units.makes().get(unit, i));
      }
      for (int i = 0; i < units.reads().size(unit); i++) {
        touched.set(units.reads().get(unit, i));
      }
    }
    long before = live(touched);
    moved.forEach(this::flip);
    if (live(touched) < before) {
      return true;
    }
    moved.forEach(this::flip);
    return false;
  }

  private long live(BitSet storages) {
    return storages.stream().filter(this::isLive).mapToLong(units::bytes).sum();
  }

  /** The early units, the peak, the others; each part as it was. */
  private int[] apart(int[] order, int peak) {
    var next = new int[order.length];
    int position = 0;
    for (int unit : order) {
      if (early[unit]) {
        next[position++] = unit;
      }
    }
    next[position++] = peak;
    for (int unit : order) {
      if (!early[unit] && unit != peak) {
        next[position++] = unit;
      }
    }
    return next;
  }
}
