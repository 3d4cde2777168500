package dev.symplan.planner.verify;

import com.google.common.math.LongMath;
import dev.symplan.planner.machine.ResultRows;
import dev.symplan.planner.plan.Placement;

/** The runs of bytes that a tensor consists of where the plan has it. */
final class Runs {
  /** Something that is done with a run of bytes. */
  @FunctionalInterface
  interface Action {
    void accept(long begin, long end);
  }

  private Runs() {}

  /** {@return from the first of a tensor's bytes to the end of the last one, on one rank} */
  static long extent(Placement placement, long bytes) {
    if (!placement.isInRows() || bytes == 0) {
      return bytes;
    }
    long last = bytes - 1;
    return LongMath.saturatedAdd(
        LongMath.saturatedMultiply(last / placement.stride(), placement.pitch()),
        last % placement.stride() + 1);
  }

  /**
   * Calls {@code action} for each run of a tensor, if it has any. What is in more rows than plans
   * may have counts with what lies between them.
   */
  static void forEach(Placement placement, long begin, long end, Action action) {
    if (begin >= end) {
      return;
    }
    if (!placement.isInRows() || (end - begin) / placement.pitch() >= ResultRows.MOST) {
      action.accept(begin, end);
      return;
    }
    for (long row = begin; row < end; row += placement.pitch()) {
      action.accept(row, Math.min(end, row + placement.stride()));
    }
  }

  /**
   * {@return whether the rows of each of two tensors lie between those of the other}
   *
   * @param distance from where the first tensor begins to where the second one does, in bytes
   */
  static boolean lieBetween(Placement a, Placement b, long distance) {
    if (!a.isInRows() || a.pitch() != b.pitch()) {
      return false;
    }
    long within = Math.floorMod(distance, a.pitch());
    return within >= a.stride() && a.pitch() - within >= b.stride();
  }
}
