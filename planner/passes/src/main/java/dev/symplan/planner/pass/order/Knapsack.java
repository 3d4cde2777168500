package dev.symplan.planner.pass.order;

import com.google.common.collect.ImmutableList;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;

/**
 * Picks the storages to give up: enough bytes in the least time. It is a knapsack problem with
 * conflicts: a storage is given up in one way, and not what another one is computed again from.
 *
 * <p>The cheapest bytes are picked first, and what turns out to be superfluous is put back. A
 * branch and bound search then looks for a faster set, from the same order: a set is as fast as its
 * members together, and no faster than if the bytes that it lacks cost as little as the next ones.
 */
final class Knapsack {
  /** The number of sets that the search looks at. */
  private static final int MAX_STEPS = 20_000;

  private final List<Saving> savings;
  private final long bytes;
  private final List<Saving> chosen = new ArrayList<>();
  private ImmutableList<Saving> best;
  private double bestMicros;
  private int steps;

  private Knapsack(List<Saving> savings, long bytes, ImmutableList<Saving> first) {
    this.savings = savings;
    this.bytes = bytes;
    this.best = first;
    this.bestMicros = micros(first);
  }

  /**
   * {@return those that free so many bytes together; all that fit together if that is not enough;
   * empty if there is none}
   *
   * @param savings the cheapest bytes first
   */
  static Optional<ImmutableList<Saving>> pick(List<Saving> savings, long bytes) {
    var greedy = greedy(savings, bytes);
    if (greedy.isEmpty()) {
      return Optional.empty();
    }
    if (freed(greedy) < bytes) {
      return Optional.of(greedy);
    }
    var search = new Knapsack(savings, bytes, greedy);
    search.descend(0, 0, 0, new BitSet(), new BitSet());
    return Optional.of(search.best);
  }

  private static ImmutableList<Saving> greedy(List<Saving> savings, long bytes) {
    var picked = new ArrayList<Saving>();
    var gone = new BitSet();
    var needed = new BitSet();
    long freed = 0;
    for (var saving : savings) {
      if (freed >= bytes) {
        break;
      }
      if (fits(saving, gone, needed)) {
        picked.add(saving);
        gone.set(saving.storage().id());
        needed.or(saving.leaves());
        freed += saving.storage().bytes();
      }
    }
    for (int i = picked.size() - 2; i >= 0; i--) {
      if (freed - picked.get(i).storage().bytes() >= bytes) {
        freed -= picked.remove(i).storage().bytes();
      }
    }
    return ImmutableList.copyOf(picked);
  }

  private static boolean fits(Saving saving, BitSet gone, BitSet needed) {
    int id = saving.storage().id();
    return !gone.get(id) && !needed.get(id) && !gone.intersects(saving.leaves());
  }

  private void descend(int next, long freed, double micros, BitSet gone, BitSet needed) {
    if (freed >= bytes) {
      if (micros < bestMicros) {
        best = ImmutableList.copyOf(chosen);
        bestMicros = micros;
      }
      return;
    }
    if (next == savings.size()
        || ++steps > MAX_STEPS
        || micros + (bytes - freed) * savings.get(next).price() >= bestMicros) {
      return;
    }
    var saving = savings.get(next);
    if (fits(saving, gone, needed)) {
      var alsoGone = (BitSet) gone.clone();
      alsoGone.set(saving.storage().id());
      var alsoNeeded = (BitSet) needed.clone();
      alsoNeeded.or(saving.leaves());
      chosen.add(saving);
      descend(
          next + 1,
          freed + saving.storage().bytes(),
          micros + saving.micros(),
          alsoGone,
          alsoNeeded);
      chosen.removeLast();
    }
    descend(next + 1, freed, micros, gone, needed);
  }

  private static long freed(List<Saving> savings) {
    return savings.stream().mapToLong(saving -> saving.storage().bytes()).sum();
  }

  private static double micros(List<Saving> savings) {
    return savings.stream().mapToDouble(Saving::micros).sum();
  }
}
