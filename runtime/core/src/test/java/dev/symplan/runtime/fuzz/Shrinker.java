package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.Objective;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.runtime.fuzz.Differential.Finding;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/** Makes a failing case smaller for as long as it fails in the same way. */
final class Shrinker {
  private static final Duration TIME = Duration.ofSeconds(5);

  private final Finding finding;
  private final long end = System.nanoTime() + TIME.toNanos();
  private FuzzCase best;

  private Shrinker(FuzzCase start, Finding finding) {
    this.best = start;
    this.finding = finding;
  }

  static FuzzCase shrink(FuzzCase start, Finding finding) {
    return new Shrinker(start, finding).run();
  }

  private FuzzCase run() {
    boolean better = true;
    while (better && System.nanoTime() < end) {
      better = options() | oneVersion() | outputs() | ops() | inputs() | sizes();
    }
    return best;
  }

  private boolean attempt(Supplier<FuzzCase> change) {
    if (System.nanoTime() > end) {
      return false;
    }
    try {
      var candidate = change.get();
      var found = Differential.check(candidate).finding();
      if (found.isPresent() && found.get().kind().equals(finding.kind())) {
        best = candidate;
        return true;
      }
    } catch (RuntimeException e) {
      // A rule refused what was left.
    }
    return false;
  }

  private boolean options() {
    var o = best.options();
    boolean better = false;
    var plain = CompileOptions.DEFAULT.withRanks(o.ranks());
    if (!o.equals(plain)) {
      better |= attempt(() -> best.with(plain));
      better |=
          !o.variants().isEmpty()
              && attempt(() -> best.with(best.options().withVariants(ImmutableMap.of())));
      better |=
          !o.spaces().isEmpty()
              && attempt(() -> best.with(best.options().withSpaces(ImmutableMap.of())));
      better |=
          o.inputs() != MemorySpace.ANY
              && attempt(() -> best.with(best.options().withInputs(MemorySpace.ANY)));
      better |=
          o.outputs() != MemorySpace.ANY
              && attempt(() -> best.with(best.options().withOutputs(MemorySpace.ANY)));
      better |=
          !o.rewrites().equals(RewriteOptions.OFF)
              && attempt(() -> best.with(best.options().withRewrites(RewriteOptions.OFF)));
      better |= o.multicast() && attempt(() -> best.with(best.options().withMulticast(false)));
      better |= !o.overlap() && attempt(() -> best.with(best.options().withOverlap(true)));
      better |=
          o.prefetch().isPresent()
              && attempt(() -> best.with(best.options().withPrefetch(OptionalInt.empty())));
      better |=
          o.memoryLimit().isPresent()
              && attempt(() -> best.with(best.options().withMemoryLimit(OptionalLong.empty())));
      better |=
          o.objective() != Objective.BALANCED
              && attempt(() -> best.with(best.options().withObjective(Objective.BALANCED)));
      better |=
          o.reorderBudget().isPresent()
              && attempt(() -> best.with(best.options().withReorderBudget(OptionalDouble.empty())));
    }
    for (var name : List.copyOf(best.options().variants().keySet())) {
      better |=
          attempt(
              () -> {
                var fewer = new HashMap<>(best.options().variants());
                fewer.remove(name);
                return best.with(best.options().withVariants(ImmutableMap.copyOf(fewer)));
              });
    }
    if (!best.target().equals(Target.H200_X4)) {
      better |= attempt(() -> best.with(Target.H200_X4));
    }
    return better;
  }

  private boolean oneVersion() {
    return best.program().graphs().size() > 1
        && attempt(
            () -> {
              var graph = best.program().graphs().getFirst();
              return best.with(
                  programOf(
                      List.of(
                          Rebuild.graph(
                              ImmutableIntArray.of(),
                              graph.inputs(),
                              graph.ops(),
                              graph.outputs()))));
            });
  }

  private Program programOf(List<Graph> graphs) {
    var p = best.program();
    return new Program(p.groups(), p.declarations(), ImmutableList.copyOf(graphs), p.endNotes());
  }

  private boolean outputs() {
    boolean better = false;
    for (int i = best.program().graphs().getFirst().outputs().size() - 1; i >= 0; i--) {
      int index = i;
      if (best.program().graphs().getFirst().outputs().size() > 1) {
        better |=
            attempt(
                () ->
                    best.with(
                        programOf(
                            best.program().graphs().stream()
                                .map(
                                    g ->
                                        Rebuild.graph(
                                            g.ranks(),
                                            g.inputs(),
                                            g.ops(),
                                            without(g.outputs(), index)))
                                .toList())));
      }
    }
    return better;
  }

  private static <T> List<T> without(List<T> list, int index) {
    var copy = new ArrayList<>(list);
    copy.remove(index);
    return copy;
  }

  /** Ops are called by their first result, so that versions lose the same one. */
  private boolean ops() {
    boolean better = false;
    var names = new ArrayList<String>();
    for (var graph : best.program().graphs()) {
      for (var op : graph.ops()) {
        names.add(key(op));
      }
    }
    for (var name : names.reversed().stream().distinct().toList()) {
      better |= attempt(() -> withoutOp(name, false)) || attempt(() -> withoutOp(name, true));
    }
    return better;
  }

  private static String key(Op op) {
    return op.results().isEmpty() ? op.def().name().toString() : op.results().getFirst().name();
  }

  /**
   * Takes an op out: its results become operands of their types, or inputs.
   *
   * @param asInputs whether they become inputs whatever operands there are
   */
  private FuzzCase withoutOp(String name, boolean asInputs) {
    var graphs = new ArrayList<Graph>();
    for (var graph : best.program().graphs()) {
      var inputs = new ArrayList<>(graph.inputs());
      var ops = new ArrayList<Op>();
      Map<Integer, Value> instead = new HashMap<>();
      for (var op : graph.ops()) {
        if (!key(op).equals(name)) {
          ops.add(mapped(op, instead));
          continue;
        }
        for (var result : op.results()) {
          if (result.isTensor()) {
            var same = asInputs ? Optional.<Value>empty() : operandLike(op, result);
            var value = same.map(v -> instead.getOrDefault(v.id(), v)).orElseGet(() -> result);
            if (same.isEmpty()) {
              if (isUsed(graph, result)) {
                inputs.add(result);
              }
            } else {
              instead.put(result.id(), value);
            }
          }
        }
      }
      graphs.add(
          Rebuild.graph(
              graph.ranks(),
              inputs,
              ops,
              graph.outputs().stream().map(output -> map(output, instead)).toList()));
    }
    return best.with(programOf(graphs));
  }

  private static boolean isUsed(Graph graph, Value value) {
    var used = new boolean[1];
    graph.ops().forEach(op -> op.operands().forEach(v -> used[0] |= v.id() == value.id()));
    graph.outputValues().forEach(v -> used[0] |= v.id() == value.id());
    return used[0];
  }

  private static Optional<Value> operandLike(Op op, Value result) {
    var found = new ArrayList<Value>();
    for (var v : op.operands()) {
      if (v.isTensor() && v.type().equals(result.type())) {
        found.add(v);
      }
    }
    return found.stream().findFirst();
  }

  private static Op mapped(Op op, Map<Integer, Value> instead) {
    return new Op(
        op.def(),
        op.args().stream().map(arg -> map(arg, instead)).collect(ImmutableList.toImmutableList()),
        op.results(),
        op.span(),
        op.notes());
  }

  private static Arg map(Arg arg, Map<Integer, Value> instead) {
    return switch (arg) {
      case Arg.Ref(Value value) -> new Arg.Ref(instead.getOrDefault(value.id(), value));
      case Arg.Seq(ImmutableList<Arg> items) ->
          new Arg.Seq(
              items.stream()
                  .map(item -> map(item, instead))
                  .collect(ImmutableList.toImmutableList()));
      default -> arg;
    };
  }

  private boolean inputs() {
    Set<String> used = new HashSet<>();
    for (var graph : best.program().graphs()) {
      for (var input : graph.inputs()) {
        if (isUsed(graph, input)) {
          used.add(input.name());
        }
      }
    }
    if (best.program().graphs().getFirst().inputs().stream()
        .allMatch(v -> used.contains(v.name()))) {
      return false;
    }
    return attempt(
        () ->
            best.with(
                programOf(
                    best.program().graphs().stream()
                        .map(
                            g ->
                                Rebuild.graph(
                                    g.ranks(),
                                    g.inputs().stream()
                                        .filter(v -> used.contains(v.name()))
                                        .toList(),
                                    g.ops(),
                                    g.outputs()))
                        .toList())));
  }

  private boolean sizes() {
    boolean better = false;
    int count = best.program().graphs().getFirst().inputs().size();
    for (int i = 0; i < count; i++) {
      var value = best.program().graphs().getFirst().inputs().get(i);
      if (!(value.type() instanceof TensorType type)) {
        continue;
      }
      var rows = type.contiguous().withSpace(MemorySpace.ANY);
      if (!rows.equals(type)) {
        better |= resize(i, rows);
      }
      for (int dim = 0; dim < type.rank(); dim++) {
        for (long size : new long[] {1, 2, type.size(dim) / 2}) {
          var now = best.program().graphs().getFirst().inputs().get(i).tensor();
          if (dim < now.rank() && size < now.size(dim) && size > 0) {
            better |=
                resize(i, TensorType.contiguous(now.dtype(), Recipes.with(now.sizes(), dim, size)));
          }
        }
      }
    }
    return better;
  }

  /** Inputs of the same type change with it. */
  private boolean resize(int index, TensorType type) {
    var old = best.program().graphs().getFirst().inputs().get(index).type();
    return attempt(() -> best.with(programOf(resized(Set.of(index), type))))
        || attempt(
            () ->
                best.with(
                    programOf(
                        resized(
                            Set.copyOf(
                                IntStream.range(
                                        0, best.program().graphs().getFirst().inputs().size())
                                    .filter(
                                        i ->
                                            best.program()
                                                .graphs()
                                                .getFirst()
                                                .inputs()
                                                .get(i)
                                                .type()
                                                .equals(old))
                                    .boxed()
                                    .toList()),
                            type))));
  }

  private List<Graph> resized(Set<Integer> which, TensorType type) {
    return best.program().graphs().stream()
        .map(
            g -> {
              var inputs = new ArrayList<Value>();
              for (int i = 0; i < g.inputs().size(); i++) {
                var v = g.inputs().get(i);
                inputs.add(
                    which.contains(i) ? new Value(v.id(), v.name(), type, v.span(), true) : v);
              }
              return Rebuild.graph(g.ranks(), inputs, g.ops(), g.outputs());
            })
        .toList();
  }
}
