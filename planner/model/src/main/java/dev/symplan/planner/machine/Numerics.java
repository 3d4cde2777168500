package dev.symplan.planner.machine;

import dev.symplan.ir.DType;

/** In which order a collective adds, and in which type: what its bits depend on. */
public enum Numerics {
  /** Nothing is added. */
  COPY("bit-exact copy"),
  ONE_RANK("one rank: a copy"),
  RANK_ORDER("in rank order, in %s, rounded once"),
  SWITCH_ORDER("in the switch's order, in %s"),
  /** Each rank has a sum of its own, and nothing says that the switch always adds in one order. */
  SWITCH_ORDER_OF_EACH("in the switch's order, in %s; ranks may get different bits"),
  NCCL("in NCCL's order and type"),
  CUSTOM("defined by its implementation");

  private final String format;

  Numerics(String format) {
    this.format = format;
  }

  /**
   * {@return whether results that are one tensor to the program have the same bits on all ranks, as
   * far as is known} If not, ranks that continue with them drift apart.
   */
  public boolean isSameOnAllRanks() {
    return this != SWITCH_ORDER_OF_EACH;
  }

  /** {@return how elements of a type are rounded, for people} */
  public String text(DType dtype) {
    return format.formatted(dtype.isFloat() && dtype.bytes() < 4 ? "f32" : dtype.shortName());
  }
}
