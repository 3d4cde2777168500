package dev.symplan.planner.pass.place;

import java.util.BitSet;

/**
 * The steps in which the storages of one rank class hold data, and the storages that share memory.
 */
public record Lifetimes(Liveness liveness, StorageLayout layout) {

  /** {@return the most bytes of the rank's own memory that are live at one step} */
  public long peakBytes() {
    return liveness.peakBytes(layout);
  }

  /** {@return by step, whether more than so many bytes of the rank's own memory are live} */
  BitSet stepsAbove(long bytes) {
    var live = liveness.liveBytes(layout);
    var above = new BitSet();
    for (int i = 1; i < live.length; i++) {
      above.set(i - 1, live[i] > bytes);
    }
    return above;
  }
}
