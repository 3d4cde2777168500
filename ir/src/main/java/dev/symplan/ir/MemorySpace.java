package dev.symplan.ir;

import com.google.common.collect.ImmutableList;
import java.util.Arrays;
import java.util.Optional;

/** The memory in which a graph wants a value; {@link #ANY} leaves the choice to the planner. */
public enum MemorySpace {
  /** The planner decides. */
  ANY(""),
  /** The symmetric arena: the same offset on every rank, readable by every peer. */
  SYMMETRIC("symm"),
  /** The rank's local arena: ordinary device memory that the plan owns. */
  LOCAL("local"),
  /** Memory that the caller owns. */
  EXTERNAL("external"),
  /**
   * For graph inputs: an arena, which one the planner decides. Other values may take the memory
   * once the input was read for the last time, so it holds nothing of use after a run.
   */
  DONATED("donated"),
  /**
   * The host's memory, for inputs and for what {@code symplan::offload} gives. Nothing but views
   * and {@code symplan::reload} reads it; in plans, {@code symplan::fetch} brings in inputs that
   * the planner keeps there, and {@code symplan::offload_} writes over them.
   */
  HOST("host");

  private final String keyword;

  MemorySpace(String keyword) {
    this.keyword = keyword;
  }

  /** {@return the word after {@code @} in a type; empty for {@link #ANY}} */
  public String keyword() {
    return keyword;
  }

  /** {@return the spaces that a caller can want for any input} */
  public static ImmutableList<MemorySpace> choices() {
    return ImmutableList.of(ANY, SYMMETRIC, LOCAL, EXTERNAL, DONATED);
  }

  public static Optional<MemorySpace> ofKeyword(String keyword) {
    return Arrays.stream(values()).filter(s -> s != ANY && s.keyword.equals(keyword)).findFirst();
  }
}
