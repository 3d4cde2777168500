package dev.symplan.planner.options;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.planner.machine.BackendVariants;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Variant;
import java.nio.file.Path;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * The caller's options for the compiler.
 *
 * @param ranks the world size; 0 to take it from the groups
 * @param hosts the host of each rank; empty for as many on each as the target has GPUs
 * @param graph the name of the graph to compile; empty for the only one
 * @param inputs where inputs live that no annotation or {@code spaces} entry places: {@code ANY}
 *     puts those in the symmetric arena that a collective can then use without a copy and leaves
 *     the others with the caller; {@code EXTERNAL} leaves all with the caller; {@code SYMMETRIC} or
 *     {@code LOCAL} plans all
 * @param outputs the same for outputs; {@code ANY} plans them
 * @param spaces for single inputs and outputs, by value name
 * @param variants forced variants, by the collective's value name or kind ({@code all_reduce})
 * @param freeVariants whether algorithms that the graph names may be replaced by others
 * @param overlap whether collectives may run beside compute
 * @param prefetch how many collectives may be in flight before the graph's own order starts them;
 *     empty for as many as their cost suggests
 * @param fusion whether elementwise and row-wise ops may run as one kernel
 * @param epilogues whether ops may run in the kernel of the collective before them
 * @param foldConstants whether a session may compute tensors that depend on no input once, before
 *     its first run
 * @param foldWeights inputs that stay the same from run to run, by name, in which {@code *} stands
 *     for any characters: a session computes tensors that depend only on them once, when they have
 *     been filled
 * @param objective the goal where less time costs memory
 * @param reorderBudget the fraction by which the predicted time of a balanced plan may grow for an
 *     order of the ops that needs less memory; empty to keep the given order
 * @param memoryLimit how many bytes a rank's arenas, inputs and outputs may take together; tensors
 *     move to the host's memory, or are computed again, if they would take more
 * @param acrossGraphs whether ops may move from one graph of a program into another, so that a
 *     session can only run all of them at once
 * @param backend the variants to choose from
 * @param multicast whether collectives may go through NVLink multicast, on targets that have it
 * @param rewrites which collectives may become others: merged, or in pieces
 * @param replicated the inputs that are the same on all ranks whenever the graph runs, which the
 *     caller vouches for, by name; others may differ
 * @param dims values of symbolic sizes
 * @param dimMax bounds of symbolic sizes that have no value
 * @param declarations files that declare ops, see {@link dev.symplan.ir.text.Declarations}
 */
public record CompileOptions(
    int ranks,
    Optional<Hosts> hosts,
    String graph,
    MemorySpace inputs,
    MemorySpace outputs,
    ImmutableMap<String, MemorySpace> spaces,
    ImmutableMap<String, Variant> variants,
    boolean freeVariants,
    boolean overlap,
    OptionalInt prefetch,
    boolean fusion,
    boolean epilogues,
    boolean foldConstants,
    ImmutableSet<String> foldWeights,
    Objective objective,
    OptionalDouble reorderBudget,
    OptionalLong memoryLimit,
    boolean acrossGraphs,
    BackendVariants backend,
    boolean multicast,
    RewriteOptions rewrites,
    ImmutableSet<String> replicated,
    ImmutableMap<String, Long> dims,
    ImmutableMap<String, Long> dimMax,
    ImmutableList<Path> declarations) {

  public static final CompileOptions DEFAULT =
      new CompileOptions(
          0,
          Optional.empty(),
          "",
          MemorySpace.ANY,
          MemorySpace.ANY,
          ImmutableMap.of(),
          ImmutableMap.of(),
          false,
          true,
          OptionalInt.empty(),
          true,
          true,
          true,
          ImmutableSet.of(),
          Objective.BALANCED,
          OptionalDouble.of(0.01),
          OptionalLong.empty(),
          false,
          BackendVariants.ANY,
          false,
          RewriteOptions.AUTO,
          ImmutableSet.of(),
          ImmutableMap.of(),
          ImmutableMap.of(),
          ImmutableList.of());

  public CompileOptions {
    if (ranks < 0 || ranks > ProcessGroup.MAX_RANKS) {
      throw new IllegalArgumentException(
          "ranks must be 0 to %s, not %s".formatted(ProcessGroup.MAX_RANKS, ranks));
    }
    if (inputs == MemorySpace.HOST
        || outputs == MemorySpace.HOST
        || spaces.containsValue(MemorySpace.HOST)) {
      throw new IllegalArgumentException("inputs and outputs cannot be in the host's memory");
    }
    if (reorderBudget.isPresent() && !(reorderBudget.getAsDouble() >= 0)) {
      throw new IllegalArgumentException(
          "the reorder budget must not be negative: " + reorderBudget);
    }
    if (prefetch.isPresent() && prefetch.getAsInt() < 0) {
      throw new IllegalArgumentException("prefetch must not be negative: " + prefetch);
    }
    if (memoryLimit.isPresent() && memoryLimit.getAsLong() < 0) {
      throw new IllegalArgumentException("the memory limit must not be negative: " + memoryLimit);
    }
  }

  /** {@return whether an input is called like one of {@code foldWeights}} */
  public boolean foldsWeight(String input) {
    return foldWeights.stream().anyMatch(name -> isCalled(name, input));
  }

  /** {@return whether an input has a name, in which {@code *} stands for any characters} */
  public static boolean isCalled(String name, String input) {
    var parts = Splitter.on('*').splitToStream(name).map(Pattern::quote);
    return input.matches(parts.collect(Collectors.joining(".*")));
  }

  public CompileOptions withRanks(int value) {
    return with(draft -> draft.ranks = value);
  }

  public CompileOptions withHosts(Hosts value) {
    return with(draft -> draft.hosts = Optional.of(value));
  }

  public CompileOptions withGraph(String value) {
    return with(draft -> draft.graph = value);
  }

  public CompileOptions withInputs(MemorySpace value) {
    return with(draft -> draft.inputs = value);
  }

  public CompileOptions withOutputs(MemorySpace value) {
    return with(draft -> draft.outputs = value);
  }

  public CompileOptions withSpaces(ImmutableMap<String, MemorySpace> value) {
    return with(draft -> draft.spaces = value);
  }

  public CompileOptions withVariants(ImmutableMap<String, Variant> value) {
    return with(draft -> draft.variants = value);
  }

  public CompileOptions withFreeVariants(boolean value) {
    return with(draft -> draft.freeVariants = value);
  }

  public CompileOptions withOverlap(boolean value) {
    return with(draft -> draft.overlap = value);
  }

  public CompileOptions withPrefetch(OptionalInt value) {
    return with(draft -> draft.prefetch = value);
  }

  public CompileOptions withFusion(boolean value) {
    return with(draft -> draft.fusion = value);
  }

  public CompileOptions withEpilogues(boolean value) {
    return with(draft -> draft.epilogues = value);
  }

  public CompileOptions withFoldConstants(boolean value) {
    return with(draft -> draft.foldConstants = value);
  }

  public CompileOptions withFoldWeights(ImmutableSet<String> names) {
    return with(draft -> draft.foldWeights = names);
  }

  public CompileOptions withObjective(Objective value) {
    return with(draft -> draft.objective = value);
  }

  public CompileOptions withReorderBudget(OptionalDouble value) {
    return with(draft -> draft.reorderBudget = value);
  }

  public CompileOptions withMemoryLimit(OptionalLong bytes) {
    return with(draft -> draft.memoryLimit = bytes);
  }

  public CompileOptions withAcrossGraphs(boolean value) {
    return with(draft -> draft.acrossGraphs = value);
  }

  public CompileOptions withBackend(BackendVariants value) {
    return with(draft -> draft.backend = value);
  }

  public CompileOptions withMulticast(boolean value) {
    return with(draft -> draft.multicast = value);
  }

  public CompileOptions withRewrites(RewriteOptions value) {
    return with(draft -> draft.rewrites = value);
  }

  public CompileOptions withReplicated(ImmutableSet<String> names) {
    return with(draft -> draft.replicated = names);
  }

  public CompileOptions withDims(
      ImmutableMap<String, Long> values, ImmutableMap<String, Long> bounds) {
    return with(
        draft -> {
          draft.dims = values;
          draft.dimMax = bounds;
        });
  }

  public CompileOptions withDeclarations(ImmutableList<Path> files) {
    return with(draft -> draft.declarations = files);
  }

  private CompileOptions with(Consumer<Draft> change) {
    var draft = new Draft(this);
    change.accept(draft);
    return draft.options();
  }

  /** Options that can be changed one at a time. */
  private static final class Draft {
    private int ranks;
    private Optional<Hosts> hosts;
    private String graph;
    private MemorySpace inputs;
    private MemorySpace outputs;
    private ImmutableMap<String, MemorySpace> spaces;
    private ImmutableMap<String, Variant> variants;
    private boolean freeVariants;
    private boolean overlap;
    private OptionalInt prefetch;
    private boolean fusion;
    private boolean epilogues;
    private boolean foldConstants;
    private ImmutableSet<String> foldWeights;
    private Objective objective;
    private OptionalDouble reorderBudget;
    private OptionalLong memoryLimit;
    private boolean acrossGraphs;
    private BackendVariants backend;
    private boolean multicast;
    private RewriteOptions rewrites;
    private ImmutableSet<String> replicated;
    private ImmutableMap<String, Long> dims;
    private ImmutableMap<String, Long> dimMax;
    private ImmutableList<Path> declarations;

    Draft(CompileOptions from) {
      this.ranks = from.ranks;
      this.hosts = from.hosts;
      this.graph = from.graph;
      this.inputs = from.inputs;
      this.outputs = from.outputs;
      this.spaces = from.spaces;
      this.variants = from.variants;
      this.freeVariants = from.freeVariants;
      this.overlap = from.overlap;
      this.prefetch = from.prefetch;
      this.fusion = from.fusion;
      this.epilogues = from.epilogues;
      this.foldConstants = from.foldConstants;
      this.foldWeights = from.foldWeights;
      this.objective = from.objective;
      this.reorderBudget = from.reorderBudget;
      this.memoryLimit = from.memoryLimit;
      this.acrossGraphs = from.acrossGraphs;
      this.backend = from.backend;
      this.multicast = from.multicast;
      this.rewrites = from.rewrites;
      this.replicated = from.replicated;
      this.dims = from.dims;
      this.dimMax = from.dimMax;
      this.declarations = from.declarations;
    }

    CompileOptions options() {
      return new CompileOptions(
          ranks,
          hosts,
          graph,
          inputs,
          outputs,
          spaces,
          variants,
          freeVariants,
          overlap,
          prefetch,
          fusion,
          epilogues,
          foldConstants,
          foldWeights,
          objective,
          reorderBudget,
          memoryLimit,
          acrossGraphs,
          backend,
          multicast,
          rewrites,
          replicated,
          dims,
          dimMax,
          declarations);
    }
  }
}
