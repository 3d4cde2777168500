package dev.symplan.planner.pass.order;

import java.util.Arrays;
import java.util.PriorityQueue;

/**
 * List scheduling by memory: of the units that may come next, the one that leaves the least memory
 * in use; among equals, the given order. From the front, or from the end backward, where the unit
 * that needs the least memory before it comes last. O(n log n).
 */
public final class ListOrder {

  /** The bytes that a unit adds to the memory in use, as of when it was entered. */
  private record Entry(long bytes, int rank) implements Comparable<Entry> {
    @Override
    public int compareTo(Entry other) {
      return bytes != other.bytes
          ? Long.compare(bytes, other.bytes)
          : Integer.compare(rank, other.rank);
    }
  }

  private final WorkUnits units;
  private final boolean backward;
  private final long[] added;
  private final int[] pending;
  private final boolean[] done;
  private final PriorityQueue<Entry> ready = new PriorityQueue<>();

  private ListOrder(WorkUnits units, boolean backward) {
    this.units = units;
    this.backward = backward;
    this.added = new long[units.count()];
    this.pending = new int[units.count()];
    this.done = new boolean[units.count()];
  }

  /** {@return the units in an order built from the first, the least growth of memory first} */
  public static int[] forward(WorkUnits units) {
    var list = new ListOrder(units, false);
    var left = units.uses();
    for (int u = 0; u < units.count(); u++) {
      for (int i = 0; i < units.makes().size(u); i++) {
        int storage = units.makes().get(u, i);
        list.added[u] += left[storage] == 0 ? 0 : units.bytes(storage);
      }
      for (int i = 0; i < units.reads().size(u); i++) {
        int storage = units.reads().get(u, i);
        list.added[u] -= left[storage] == 1 ? units.bytes(storage) : 0;
      }
    }
    return list.run(
        unit -> {
          for (int i = 0; i < units.reads().size(unit); i++) {
            int storage = units.reads().get(unit, i);
            if (--left[storage] == 1 && !units.escapes(storage)) {
              list.addToReaders(storage);
            }
          }
        });
  }

  /** {@return the units in an order built from the last, the least growth of memory first} */
  public static int[] backward(WorkUnits units) {
    var list = new ListOrder(units, true);
    var live = new boolean[units.storages()];
    for (int s = 0; s < live.length; s++) {
      live[s] = units.escapes(s);
    }
    for (int u = 0; u < units.count(); u++) {
      for (int i = 0; i < units.makes().size(u); i++) {
        int storage = units.makes().get(u, i);
        boolean read = live[storage] || units.readers().size(storage) > 0;
        list.added[u] -= read ? units.bytes(storage) : 0;
      }
      for (int i = 0; i < units.reads().size(u); i++) {
        int storage = units.reads().get(u, i);
        list.added[u] += live[storage] ? 0 : units.bytes(storage);
      }
    }
    var order =
        list.run(
            unit -> {
              for (int i = 0; i < units.reads().size(unit); i++) {
                int storage = units.reads().get(unit, i);
                if (!live[storage]) {
                  live[storage] = true;
                  list.addToReaders(storage);
                }
              }
            });
    var reversed = new int[order.length];
    Arrays.setAll(reversed, i -> order[order.length - 1 - i]);
    return reversed;
  }

  private interface Step {
    void take(int unit);
  }

  private int[] run(Step step) {
    var first = backward ? units.after() : units.before();
    var then = backward ? units.before() : units.after();
    for (int u = 0; u < pending.length; u++) {
      pending[u] = first.size(u);
      enter(u);
    }
    var order = new int[pending.length];
    for (int position = 0; position < order.length; position++) {
      int unit = next();
      order[position] = unit;
      done[unit] = true;
      step.take(unit);
      for (int k = 0; k < then.size(unit); k++) {
        int other = then.get(unit, k);
        pending[other]--;
        enter(other);
      }
    }
    return order;
  }

  private void enter(int unit) {
    if (pending[unit] == 0 && !done[unit]) {
      ready.add(new Entry(added[unit], backward ? -unit : unit));
    }
  }

  private int next() {
    while (true) {
      var entry = ready.remove();
      int unit = Math.abs(entry.rank());
      if (!done[unit] && entry.bytes() == added[unit]) {
        return unit;
      }
    }
  }

  /** Units that use the storage now add less than they did. */
  private void addToReaders(int storage) {
    for (int i = 0; i < units.readers().size(storage); i++) {
      int unit = units.readers().get(storage, i);
      if (!done[unit]) {
        added[unit] -= units.bytes(storage);
        enter(unit);
      }
    }
  }
}
