package dev.symplan.planner.pass.order;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.planner.pass.analysis.IntLists;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

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

  private record Profiled(int[] order, MemoryProfile profile) {
    static Profiled of(WorkUnits units, int[] order) {
      return new Profiled(order, MemoryProfile.of(units, order));
    }
  }

  private final WorkUnits units;

  /** The state of one round: what runs before the peak, and how many uses of each storage do. */
  private final boolean[] early;

  private final int[] earlyReaders;

  private final Marks seen;
  private final Marks touched;

  private PeakDescent(WorkUnits units) {
    this.units = units;
    this.early = new boolean[units.count()];
    this.earlyReaders = new int[units.storages()];
    this.seen = new Marks(units.count());
    this.touched = new Marks(units.storages());
  }

  /** A small set of numbers, which is emptied often. */
  private static final class Marks {
    private final int[] round;
    private int now = 1;

    Marks(int count) {
      this.round = new int[count];
    }

    void clear() {
      now++;
    }

    /** {@return whether the number was not in the set} */
    boolean add(int number) {
      boolean isNew = round[number] != now;
      round[number] = now;
      return isNew;
    }

    boolean contains(int number) {
      return round[number] == now;
    }
  }

  /**
   * @param work how many units may be looked at, over all rounds
   */
  public static int[] from(WorkUnits units, int[] order, long work) {
    var descent = new PeakDescent(units);
    var best = Profiled.of(units, order);
    for (long rounds = work / Math.max(1, order.length); rounds > 0; rounds--) {
      var next = descent.lower(best.order(), best.profile());
      if (next.isEmpty()) {
        break;
      }
      best = next.get();
    }
    return best.order();
  }

  /** {@return an order with a lower peak, if moving units across the peak gives one} */
  private Optional<Profiled> lower(int[] order, MemoryProfile profile) {
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
    var all = Profiled.of(units, apart(order, peak));
    if (all.profile().isBelow(profile)) {
      return Optional.of(all);
    }
    for (var move : moves.subList(0, Math.min(MAX_ALONE, moves.size()))) {
      split(order, profile.at());
      if (alone(move, peak)) {
        var one = Profiled.of(units, apart(order, peak));
        if (one.profile().isBelow(profile)) {
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
    touched.clear();
    for (int i = 0; i < units.reads().size(peak); i++) {
      touched.add(units.reads().get(peak, i));
    }
    var live = new ArrayList<Integer>();
    for (int storage = 0; storage < units.storages(); storage++) {
      if (isLive(storage) && !touched.contains(storage)) {
        live.add(storage);
      }
    }
    live.sort(Comparator.<Integer>comparingLong(units::bytes).reversed());
    return live.subList(0, Math.min(MAX_STORAGES, live.size()));
  }

  private boolean isLive(int storage) {
    return units.maker(storage) >= 0
        && early[units.maker(storage)]
        && (units.escapes(storage) || earlyReaders[storage] < units.readers().size(storage));
  }

  /** Moves what needs the storage, or what makes it, across the peak if that leaves less there. */
  private Optional<Move> move(int storage, int peak) {
    if (!isLive(storage)) {
      return Optional.empty();
    }
    var seeds = new ArrayList<Integer>();
    if (!units.escapes(storage)) {
      for (int i = 0; i < units.readers().size(storage); i++) {
        int unit = units.readers().get(storage, i);
        if (!early[unit]) {
          seeds.add(unit);
        }
      }
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
    var found = new int[MAX_UNITS];
    int count = 0;
    var queue = new ArrayDeque<Integer>(seeds);
    seen.clear();
    seeds.forEach(seen::add);
    while (!queue.isEmpty()) {
      int unit = queue.remove();
      if (unit == peak || count == MAX_UNITS) {
        return Optional.empty();
      }
      found[count++] = unit;
      for (int k = 0; k < along.size(unit); k++) {
        int other = along.get(unit, k);
        boolean moves = other == peak || early[other] != hoist;
        if (moves && seen.add(other)) {
          queue.add(other);
        }
      }
    }
    return Optional.of(ImmutableIntArray.copyOf(Arrays.copyOf(found, count)));
  }

  private boolean flipIfLess(ImmutableIntArray moved) {
    long before = live(moved);
    flip(moved);
    if (live(moved) < before) {
      return true;
    }
    flip(moved);
    return false;
  }

  private void flip(ImmutableIntArray moved) {
    for (int i = 0; i < moved.length(); i++) {
      flip(moved.get(i));
    }
  }

  /** The bytes that are live of what some units make and read. */
  private long live(ImmutableIntArray of) {
    touched.clear();
    long bytes = 0;
    for (int i = 0; i < of.length(); i++) {
      bytes += live(units.makes(), of.get(i)) + live(units.reads(), of.get(i));
    }
    return bytes;
  }

  private long live(IntLists storages, int unit) {
    long bytes = 0;
    for (int i = 0; i < storages.size(unit); i++) {
      int storage = storages.get(unit, i);
      bytes += touched.add(storage) && isLive(storage) ? units.bytes(storage) : 0;
    }
    return bytes;
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
