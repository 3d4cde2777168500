package dev.symplan.planner;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;

/**
 * What the caller decides.
 *
 * @param ranks the world size; 0 to take it from the groups
 * @param graph the name of the graph to compile; empty for the only one
 * @param inputs where inputs live that no annotation or {@code spaces} entry places: {@code ANY}
 *     puts those in the symmetric arena that a collective can then use without a copy and leaves
 *     the others with the caller; {@code EXTERNAL} leaves all with the caller; {@code SYMMETRIC} or
 *     {@code LOCAL} plans all; {@code DONATED} plans all, and gives their memory away
 * @param outputs the same for outputs; {@code ANY} plans them
 * @param spaces for single inputs and outputs, by value name
 * @param variants forced variants, by the collective's value name or kind ({@code all_reduce})
 * @param overlap whether collectives may run beside compute
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
          ImmutableMap.of(),
          ImmutableMap.of());

  public CompileOptions {
    if (ranks < 0) {
      throw new IllegalArgumentException("ranks is " + ranks);
    }
    if (outputs == MemorySpace.DONATED) {
      throw new IllegalArgumentException("only inputs can be donated");
    }
  }

  public CompileOptions withRanks(int newRanks) {
    return new CompileOptions(
        newRanks, graph, inputs, outputs, spaces, variants, overlap, dims, dimMax);
  }

  public CompileOptions withGraph(String name) {
    return new CompileOptions(
        ranks, name, inputs, outputs, spaces, variants, overlap, dims, dimMax);
  }

  public CompileOptions withInputs(MemorySpace space) {
    return new CompileOptions(
        ranks, graph, space, outputs, spaces, variants, overlap, dims, dimMax);
  }

  public CompileOptions withOutputs(MemorySpace space) {
    return new CompileOptions(ranks, graph, inputs, space, spaces, variants, overlap, dims, dimMax);
  }

  public CompileOptions withSpaces(ImmutableMap<String, MemorySpace> newSpaces) {
    return new CompileOptions(
        ranks, graph, inputs, outputs, newSpaces, variants, overlap, dims, dimMax);
  }

  public CompileOptions withVariants(ImmutableMap<String, Variant> newVariants) {
    return new CompileOptions(
        ranks, graph, inputs, outputs, spaces, newVariants, overlap, dims, dimMax);
  }

  public CompileOptions withOverlap(boolean newOverlap) {
    return new CompileOptions(
        ranks, graph, inputs, outputs, spaces, variants, newOverlap, dims, dimMax);
  }

  public CompileOptions withDims(
      ImmutableMap<String, Long> values, ImmutableMap<String, Long> bounds) {
    return new CompileOptions(
        ranks, graph, inputs, outputs, spaces, variants, overlap, values, bounds);
  }
}
