package dev.symplan.planner.machine;

import dev.symplan.ir.DType;

/** In which order a collective adds, and in which type: what its bits depend on. */
public enum Numerics {
  /** Nothing is added. */
  COPY("bit-exact copy"),
  ONE_RANK("one rank: a copy"),
  RANK_ORDER("in rank order, in %s, rounded once"),
  SWITCH_ORDER("in the switch's order, in %s"),
  NCCL("in NCCL's order and type"),
  CUSTOM("defined by its implementation");

  private final String format;

  Numerics(String format) {
    this.format = format;
  }

  /** {@return what becomes of elements of a type, for people} */
  public String text(DType dtype) {
    return format.formatted(dtype.isFloat() && dtype.bytes() < 4 ? "f32" : dtype.shortName());
  }
}
