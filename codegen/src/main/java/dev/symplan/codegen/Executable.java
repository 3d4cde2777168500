package dev.symplan.codegen;

import com.google.common.collect.ImmutableList;

/**
 * A plan as instructions: everything that is fixed before the first run is fixed here.
 *
 * @param symmetricBytes the size of each rank's symmetric arena
 * @param digest that of the plan: what the ranks compare before the first collective
 * @param ranks one program for each rank
 */
public record Executable(
    String name, long symmetricBytes, String digest, ImmutableList<RankProgram> ranks) {

  /**
   * {@return the instructions with their addresses, one on each line; ranks that do the same are
   * printed once. The same executable gives the same text}
   */
  public String toText() {
    return ExecutableText.of(this);
  }
}
