package dev.symplan.planner.report;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;

/** A part of a report. */
public enum View {
  /** Arenas, counts, and the predicted time. */
  SUMMARY,
  /** Each collective with its variant, what was not taken and why, and how it adds. */
  COLLECTIVES,
  /** Each buffer with arena, offset and live range, and why collectives find it there. */
  VALUES,
  /** The arenas over the schedule, as a map. */
  MEMORY,
  /** The issue order, with streams, waits and predicted times. */
  SCHEDULE,
  /**
   * The buffers that are live when the arenas are fullest, and the changes that would need less.
   */
  PEAK,
  /** The instructions that the ranks execute, and the CUDA C++ of the kernels. */
  CODE,
  /** The planned graph, in the graph language. */
  GRAPH;

  /** The views that are shown by default. */
  public static final ImmutableList<View> USUAL = ImmutableList.of(SUMMARY, COLLECTIVES, VALUES);

  /** {@return the name in options and files} */
  public String text() {
    return Ascii.toLowerCase(name());
  }

  @Override
  public String toString() {
    return text();
  }
}
