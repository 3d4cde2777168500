package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.op.OpRegistry;

/**
 * The facts that an FX text leaves out.
 *
 * @param name the graph's name; those of a text with several are numbered
 * @param groups the process groups that are known; others span all ranks
 * @param ranks the world size; 0 to take it from the collectives' group sizes
 * @param dims values of symbolic sizes
 * @param dimMax bounds of symbolic sizes that have no value, to plan with
 */
public record ImportOptions(
    String name,
    ImmutableList<ProcessGroup> groups,
    int ranks,
    ImmutableMap<String, Long> dims,
    ImmutableMap<String, Long> dimMax,
    OpRegistry registry) {

  public static ImportOptions named(String name) {
    return new ImportOptions(
        name, ImmutableList.of(), 0, ImmutableMap.of(), ImmutableMap.of(), BuiltinOps.registry());
  }
}
