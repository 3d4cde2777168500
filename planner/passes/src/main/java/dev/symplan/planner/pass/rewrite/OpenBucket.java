package dev.symplan.planner.pass.rewrite;

import dev.symplan.planner.pass.select.CollectiveCost;
import java.util.ArrayList;
import java.util.List;

/** Collectives that will become one, and may be joined by more; arrays by graph. */
final class OpenBucket {
  final List<Integer> members = new ArrayList<>();

  /** Whether the results may take the operands' memory. */
  final boolean inPlace;

  /** The member whose position they take. */
  int anchor;

  CollectiveCost price;

  /** The bytes that they move, the larger of operands and results. */
  long moved;

  /** The predicted time of each by itself, and of all in one, in µs. */
  double apart;

  double together;

  /** The first position at which all operands are ready, and the first that must find them done. */
  final int[] ready;

  final int[] needed;

  /** The bytes of operands that live until the collective only, and of results. */
  final long[] held;

  final long[] made;

  public OpenBucket(
      int k, boolean inPlace, CollectiveCost price, long moved, double micros, int graphs) {
    members.add(k);
    this.inPlace = inPlace;
    this.anchor = k;
    this.price = price;
    this.moved = moved;
    this.apart = micros;
    this.together = micros;
    this.ready = new int[graphs];
    this.needed = new int[graphs];
    this.held = new long[graphs];
    this.made = new long[graphs];
  }

  /**
   * Takes in a later one of a single collective.
   *
   * @param sinks whether its position is taken, rather than that of those before
   */
  public void take(OpenBucket own, boolean sinks, CollectiveCost newPrice, double micros) {
    members.addAll(own.members);
    anchor = sinks ? own.anchor : anchor;
    price = newPrice;
    moved += own.moved;
    apart += own.apart;
    together = micros;
    for (int g = 0; g < ready.length; g++) {
      ready[g] = Math.max(ready[g], own.ready[g]);
      needed[g] = Math.min(needed[g], own.needed[g]);
      held[g] += own.held[g];
      made[g] += own.made[g];
    }
  }
}
