package dev.symplan.planner.plan;

import com.google.common.base.Ascii;

/** The memory that holds a buffer. */
public enum ArenaKind {
  /** One allocation of the same size per rank, readable and writable by every peer. */
  SYMMETRIC,
  /** The rank's own memory, owned by the plan. */
  LOCAL,
  /** Pinned memory of the rank's host, owned by the plan: only copies to it and back touch it. */
  HOST,
  /** A graph input in memory of the caller. */
  EXTERNAL_INPUT,
  /** A graph output in memory of the caller. */
  EXTERNAL_OUTPUT;

  public String text() {
    return Ascii.toLowerCase(name());
  }

  /** {@return whether it is device memory that the plan owns} */
  public boolean isPlanned() {
    return this == SYMMETRIC || this == LOCAL;
  }

  public boolean isExternal() {
    return this == EXTERNAL_INPUT || this == EXTERNAL_OUTPUT;
  }
}
