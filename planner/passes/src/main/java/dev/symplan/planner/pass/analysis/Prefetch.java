package dev.symplan.planner.pass.analysis;

import dev.symplan.planner.pass.analysis.OverlapWindows.Window;
import java.util.OptionalInt;
import java.util.PriorityQueue;

/**
 * Limits how many collectives are in flight ahead: started before their place in the graph's order,
 * and with a result that is not read yet.
 */
public final class Prefetch {
  private final OptionalInt limit;

  /**
   * Where the results of those that were started early are read: the last ones, up to the limit.
   */
  private final PriorityQueue<Integer> needed = new PriorityQueue<>();

  public Prefetch(OptionalInt limit) {
    this.limit = limit;
  }

  /** {@return the first position at which the next collective may start, in the graph's order} */
  public int earliest(Window window) {
    if (limit.isEmpty() || needed.size() < limit.getAsInt()) {
      return 0;
    }
    return limit.getAsInt() == 0 ? window.given() : Math.min(window.given(), needed.element());
  }

  /** Takes in the start of a collective. */
  public void start(int position, Window window) {
    if (limit.isPresent() && position < window.given()) {
      needed.add(window.needed());
      if (needed.size() > limit.getAsInt()) {
        needed.remove();
      }
    }
  }
}
