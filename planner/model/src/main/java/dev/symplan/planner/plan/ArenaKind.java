package dev.symplan.planner.plan;

import com.google.common.base.Ascii;

/** The memory that holds a buffer. */
public enum ArenaKind {
  /** One allocation of the same size per rank, readable and writable by every peer. */
  SYMMETRIC,
  /** The rank's own memory, owned by the plan. */
  LOCAL,
  /** A graph input in memory of the caller. */
  EXTERNAL_INPUT,
  /** A graph output in memory of the caller. */
  EXTERNAL_OUTPUT;

  public String text() {
    return Ascii.toLowerCase(name());
  }

  public boolean isExternal() {
    return this == EXTERNAL_INPUT || this == EXTERNAL_OUTPUT;
  }
}
