package dev.symplan.planner.pass.analysis;

import com.google.common.base.Suppliers;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.cost.JoinedMakers;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.RewriteOptions.Mode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Stream;

/** The analyses of one graph. Each is made when it is first needed, and kept. */
public final class Analyses {
  private final Graph graph;
  private final SpaceChoice spaces;
  private final CostModel costs;
  private final boolean fuse;
  private final Mode layouts;
  private final Supplier<Map<OpDef, List<Op>>> byDef;
  private final Supplier<ImmutableIntArray> makers;
  private final Supplier<Aliases> aliases;
  private final Supplier<Uses> uses;
  private final Supplier<ImmutableList<Collective>> collectives;
  private final Supplier<Fusion> fusion;
  private final Supplier<OverlapWindows> overlap;
  private final Supplier<ImmutableList<Optional<EpilogueOps>>> epilogues;
  private final Supplier<ExternalOutputs> externalOutputs;
  private final Supplier<OperandConstraints> constraints;

  /**
   * @param spaces where the caller wants the graph's inputs and outputs
   * @param fuse whether elementwise ops may run as one step
   * @param layouts when collectives take operands whose rows are apart as they lie
   */
  public Analyses(Graph graph, SpaceChoice spaces, CostModel costs, boolean fuse, Mode layouts) {
    this.graph = graph;
    this.spaces = spaces;
    this.costs = costs;
    this.fuse = fuse;
    this.layouts = layouts;
    this.byDef = Suppliers.memoize(() -> byDef(graph));
    this.makers = Suppliers.memoize(() -> makers(graph));
    this.aliases = Suppliers.memoize(() -> Aliases.of(graph));
    this.uses = Suppliers.memoize(() -> Uses.of(graph, aliases()));
    this.collectives = Suppliers.memoize(() -> Collective.allOf(graph.ops()));
    this.fusion = Suppliers.memoize(() -> Fusion.of(graph, aliases(), uses(), fuse));
    this.overlap = Suppliers.memoize(() -> OverlapWindows.of(this, costs));
    this.epilogues = Suppliers.memoize(() -> EpilogueOps.allOf(this));
    this.externalOutputs = Suppliers.memoize(() -> ExternalOutputs.of(aliases(), spaces));
    this.constraints =
        Suppliers.memoize(
            () ->
                OperandConstraints.of(
                    aliases(), collectives(), spaces, externalOutputs(), layouts));
  }

  /** By identity: definitions have many parts. */
  private static Map<OpDef, List<Op>> byDef(Graph graph) {
    var parts = Parallel.parts(graph.ops().size(), (from, to) -> byDef(graph.ops(), from, to));
    var byDef = parts.getFirst();
    for (var part : parts.subList(1, parts.size())) {
      part.forEach((def, ops) -> byDef.computeIfAbsent(def, _ -> new ArrayList<>()).addAll(ops));
    }
    return byDef;
  }

  private static Map<OpDef, List<Op>> byDef(List<Op> ops, int from, int to) {
    var byDef = new IdentityHashMap<OpDef, List<Op>>();
    for (int i = from; i < to; i++) {
      byDef.computeIfAbsent(ops.get(i).def(), _ -> new ArrayList<>()).add(ops.get(i));
    }
    return byDef;
  }

  private static ImmutableIntArray makers(Graph graph) {
    var makers = new int[graph.valueCount()];
    Arrays.fill(makers, -1);
    Parallel.forEach(
        graph.ops().size(),
        (from, to) -> {
          for (int i = from; i < to; i++) {
            for (var result : graph.ops().get(i).results()) {
              makers[result.id()] = i;
            }
          }
        });
    return ImmutableIntArray.copyOf(makers);
  }

  /** {@return the analyses of another graph with the same inputs and outputs} */
  public Analyses of(Graph other) {
    return other == graph ? this : new Analyses(other, spaces, costs, fuse, layouts);
  }

  /** {@return those of the same graph, where all collectives take their operands without gaps} */
  public Analyses copyingRows() {
    return new Analyses(graph, spaces, costs, fuse, Mode.OFF);
  }

  public Graph graph() {
    return graph;
  }

  /** {@return the ops whose definitions meet a condition, those of each definition together} */
  public Stream<Op> ops(Predicate<OpDef> condition) {
    return byDef.get().entrySet().stream()
        .filter(entry -> condition.test(entry.getKey()))
        .flatMap(entry -> entry.getValue().stream());
  }

  /** {@return whether the graph has an op whose definition meets a condition} */
  public boolean hasOp(Predicate<OpDef> condition) {
    return byDef.get().keySet().stream().anyMatch(condition);
  }

  /** {@return by value, the op that gives it; -1 for an input} */
  public ImmutableIntArray makers() {
    return makers.get();
  }

  /** Makes all that is known of collectives, so that threads which ask for it need not wait. */
  public void prepareCollectives() {
    var _ = overlap();
    var _ = epilogues.get();
    var _ = constraints();
  }

  public SpaceChoice spaces() {
    return spaces;
  }

  public Aliases aliases() {
    return aliases.get();
  }

  public Uses uses() {
    return uses.get();
  }

  /** {@return the graph's collectives, in its order} */
  public ImmutableList<Collective> collectives() {
    return collectives.get();
  }

  /** {@return the ops that run as one step} */
  public Fusion fusion() {
    return fusion.get();
  }

  /** {@return between which ops each collective may run} */
  public OverlapWindows overlap() {
    return overlap.get();
  }

  /**
   * {@return the time of the step before a collective, in µs, as far as it runs while data is on
   * the links, since both are one kernel where the collective runs as this variant; 0 if they are
   * two}
   */
  public double makerMicros(int k, Variant variant) {
    int given = overlap().window(k).given();
    return given > 0
        ? overlap().computeBetween(given - 1, given)
            * shareMadeBy(overlap().units().get(given - 1), k, variant)
        : 0;
  }

  private double shareMadeBy(ImmutableIntArray unit, int k, Variant variant) {
    return JoinedMakers.share(
        unit.stream().mapToObj(graph.ops()::get).toList(),
        collectives().get(k).op(),
        variant,
        value -> {
          int storage = aliases().id(value);
          return storage < 0 || fusion().isPassing(storage) ? JoinedMakers.PASSES : storage;
        });
  }

  /** {@return the ops behind a collective that could run in its kernel, if there are such} */
  public Optional<EpilogueOps> epilogue(int k) {
    return epilogues.get().get(k);
  }

  public ExternalOutputs externalOutputs() {
    return externalOutputs.get();
  }

  /** {@return for each tensor of each collective, whether it can be symmetric without a copy} */
  public OperandConstraints constraints() {
    return constraints.get();
  }
}
