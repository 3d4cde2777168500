package dev.symplan.planner.pass.order;

import java.util.function.IntUnaryOperator;

/**
 * The bytes that are live at the units of an order.
 *
 * @param peak the most that are live at one unit
 * @param at the first position in the order where that many are live
 * @param positions the number of positions where that many are live
 */
public record MemoryProfile(long peak, int at, long positions) {

  /** {@return the live bytes of units in an order} */
  public static MemoryProfile of(WorkUnits units, int[] order) {
    return of(live(units, order));
  }

  /** {@return the peak of so many live bytes by position} */
  static MemoryProfile of(long[] live) {
    int at = 0;
    long positions = 0;
    for (int position = 0; position < live.length; position++) {
      if (live[position] > live[at]) {
        at = position;
        positions = 0;
      }
      positions += live[position] == live[at] ? 1 : 0;
    }
    return new MemoryProfile(live.length == 0 ? 0 : live[at], at, positions);
  }

  /** {@return the live bytes by position of an order} */
  static long[] live(WorkUnits units, int[] order) {
    var left = units.uses();
    IntUnaryOperator usesLeft = storage -> left[storage];
    var live = new long[order.length];
    long held = 0;
    for (int position = 0; position < order.length; position++) {
      int unit = order[position];
      long made = 0;
      long ended = 0;
      long unread = 0;
      for (int i = 0; i < units.makes().size(unit); i++) {
        int storage = units.makes().get(unit, i);
        made += units.bytes(storage);
        unread += left[storage] == 0 ? units.bytes(storage) : 0;
      }
      for (int i = 0; i < units.reads().size(unit); i++) {
        int storage = units.reads().get(unit, i);
        ended += --left[storage] == 0 ? units.bytes(storage) : 0;
      }
      live[position] = held + made - inPlace(units, unit, usesLeft);
      held += made - unread - ended;
    }
    return live;
  }

  /**
   * The bytes of what a unit makes in place of operands of the same size.
   *
   * @param left how many uses of a storage are left after the unit
   */
  public static long inPlace(WorkUnits units, int unit, IntUnaryOperator left) {
    if (!units.isElementwise(unit)) {
      return 0;
    }
    long saved = 0;
    long taken = 0;
    for (int i = 0; i < units.makes().size(unit); i++) {
      long made = units.bytes(units.makes().get(unit, i));
      for (int k = 0; k < Math.min(Long.SIZE, units.reads().size(unit)); k++) {
        int storage = units.reads().get(unit, k);
        if (left.applyAsInt(storage) == 0
            && units.bytes(storage) == made
            && (taken & 1L << k) == 0) {
          taken |= 1L << k;
          saved += made;
          break;
        }
      }
    }
    return saved;
  }

  /** {@return whether less is live at the peak, or as much at fewer positions} */
  public boolean isBelow(MemoryProfile other) {
    return peak != other.peak ? peak < other.peak : positions < other.positions;
  }
}
