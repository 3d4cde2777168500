package dev.symplan.planner;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import java.util.OptionalDouble;

/**
 * What the caller decides.
 *
 * @param ranks the world size; 0 to take it from the groups
 * @param graph the name of the graph to compile; empty for the only one
 * @param inputs where inputs live that no annotation or {@code spaces} entry places: {@code ANY}
 *     puts those in the symmetric arena that a collective can then use without a copy and leaves
 *     the others with the caller; {@code EXTERNAL} leaves all with the caller; {@code SYMMETRIC} or
 *     {@code LOCAL} plans all
 * @param outputs the same for outputs; {@code ANY} plans them
 * @param spaces for single inputs and outputs, by value name
 * @param variants forced variants, by the collective's value name or kind ({@code all_reduce})
 * @param overlap whether collectives may run beside compute
 * @param fusion whether ops that go by elements or rows may run as one kernel
 * @param reorderBudget by which part of its predicted time a run may get longer for an order of the
 *     ops that needs less memory; empty to keep the given order
 * @param dims values of symbolic sizes
 * @param dimMax bounds of symbolic sizes that have no value
 */
public record CompileOptions(
    int ranks,
    String graph,
    MemorySpace inputs,
    MemorySpace outputs,
    ImmutableMap<String, MemorySpace> spaces,
    ImmutableMap<String, Variant> variants,
    boolean overlap,
    boolean fusion,
    OptionalDouble reorderBudget,
    ImmutableMap<String, Long> dims,
    ImmutableMap<String, Long> dimMax) {

  public static final CompileOptions DEFAULT =
      new CompileOptions(
          0,
          "",
          MemorySpace.ANY,
          MemorySpace.ANY,
          ImmutableMap.of(),
          ImmutableMap.of(),
          true,
          true,
          OptionalDouble.of(0.01),
          ImmutableMap.of(),
          ImmutableMap.of());

  public CompileOptions {
    if (ranks < 0) {
      throw new IllegalArgumentException("ranks is " + ranks);
    }
    if (reorderBudget.isPresent() && !(reorderBudget.getAsDouble() >= 0)) {
      throw new IllegalArgumentException("the budget of reordering is " + reorderBudget);
    }
  }

  public CompileOptions withRanks(int newRanks) {
    return new CompileOptions(
        newRanks,
        graph,
        inputs,
        outputs,
        spaces,
        variants,
        overlap,
        fusion,
        reorderBudget,
        dims,
        dimMax);
  }

  public CompileOptions withGraph(String name) {
    return new CompileOptions(
        ranks,
        name,
        inputs,
        outputs,
        spaces,
        variants,
        overlap,
        fusion,
        reorderBudget,
        dims,
        dimMax);
  }

  public CompileOptions withInputs(MemorySpace space) {
    return new CompileOptions(
        ranks,
        graph,
        space,
        outputs,
        spaces,
        variants,
        overlap,
        fusion,
        reorderBudget,
        dims,
        dimMax);
  }

  public CompileOptions withOutputs(MemorySpace space) {
    return new CompileOptions(
        ranks,
        graph,
        inputs,
        space,
        spaces,
        variants,
        overlap,
        fusion,
        reorderBudget,
        dims,
        dimMax);
  }

  public CompileOptions withSpaces(ImmutableMap<String, MemorySpace> newSpaces) {
    return new CompileOptions(
        ranks,
        graph,
        inputs,
        outputs,
        newSpaces,
        variants,
        overlap,
        fusion,
        reorderBudget,
        dims,
        dimMax);
  }

  public CompileOptions withVariants(ImmutableMap<String, Variant> newVariants) {
    return new CompileOptions(
        ranks,
        graph,
        inputs,
        outputs,
        spaces,
        newVariants,
        overlap,
        fusion,
        reorderBudget,
        dims,
        dimMax);
  }

  public CompileOptions withOverlap(boolean newOverlap) {
    return new CompileOptions(
        ranks,
        graph,
        inputs,
        outputs,
        spaces,
        variants,
        newOverlap,
        fusion,
        reorderBudget,
        dims,
        dimMax);
  }

  public CompileOptions withFusion(boolean newFusion) {
    return new CompileOptions(
        ranks,
        graph,
        inputs,
        outputs,
        spaces,
        variants,
        overlap,
        newFusion,
        reorderBudget,
        dims,
        dimMax);
  }

  public CompileOptions withReorderBudget(OptionalDouble budget) {
    return new CompileOptions(
        ranks, graph, inputs, outputs, spaces, variants, overlap, fusion, budget, dims, dimMax);
  }

  public CompileOptions withDims(
      ImmutableMap<String, Long> values, ImmutableMap<String, Long> bounds) {
    return new CompileOptions(
        ranks,
        graph,
        inputs,
        outputs,
        spaces,
        variants,
        overlap,
        fusion,
        reorderBudget,
        values,
        bounds);
  }
}
