package dev.symplan.planner.options;

import com.google.common.base.Ascii;
import java.util.Arrays;
import java.util.Optional;

/**
 * The goal of a plan when less time costs memory: a collective that starts early keeps its result
 * alive longer.
 */
public enum Objective {
  /** The least predicted time, whatever memory it takes. */
  TIME,
  /**
   * No more memory at the peak than the graph's own order takes without overlap, unless the
   * predicted gain is over a threshold, which the plan states. Workspaces of collectives that are a
   * large part of the memory must gain as much.
   */
  BALANCED,
  /** The least memory at the peak, whatever time it takes. */
  MEMORY;

  public String text() {
    return Ascii.toLowerCase(name());
  }

  /** {@return the objective with this name} */
  public static Optional<Objective> ofText(String text) {
    return Arrays.stream(values()).filter(objective -> objective.text().equals(text)).findFirst();
  }
}
