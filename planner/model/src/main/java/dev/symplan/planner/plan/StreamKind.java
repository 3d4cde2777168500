package dev.symplan.planner.plan;

import com.google.common.base.Ascii;

/** The queues of one rank. Work in one queue runs in order; across queues, only events order it. */
public enum StreamKind {
  /** Local ops, and collectives that nothing overlaps. */
  COMPUTE,
  /** Collectives that use SMs, beside compute. */
  COMM,
  /** Transfers by the copy engines, beside compute. */
  COPY;

  public String text() {
    return Ascii.toLowerCase(name());
  }
}
