package dev.symplan.ir.pt2;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.fx.FxFunction;
import java.util.OptionalLong;

/**
 * One exported program of an archive.
 *
 * @param stored the inputs whose tensors the archive holds, in the order of the graph's inputs
 * @param ranges the possible values of the symbolic sizes
 */
record Model(
    FxFunction function, ImmutableList<Stored> stored, ImmutableMap<String, Range> ranges) {

  /**
   * An input that is a parameter, a buffer or a constant of the module.
   *
   * @param input the name in the graph, {@code p_l_weight}
   * @param qualifiedName the name in the module, {@code l.weight}
   * @param constant whether it is not part of the module's state
   */
  record Stored(String input, String qualifiedName, boolean constant) {}

  /** The bounds of a size, both included. */
  record Range(OptionalLong min, OptionalLong max) {}
}
