package dev.symplan.planner.pass.place;

/** When the storages of one rank class hold data, and which of them share memory. */
public record Lifetimes(Liveness liveness, StorageLayout layout) {

  /** {@return the most bytes of the rank's own memory that are live at one step} */
  public long peakBytes() {
    return liveness.peakBytes(layout);
  }
}
