package dev.symplan.ir.joint;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Iterables;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;

/** Graphs that run one after the other, with ties that were checked to fit them. */
final class TiedGraphs {
  private final ImmutableList<Graph> graphs;

  /** By graph and name, the tie that says where an input comes from. */
  private final List<Map<String, Tie>> sources = new ArrayList<>();

  /**
   * @throws CompileException when a tie does not fit the graphs
   */
  TiedGraphs(List<Graph> graphs, List<Tie> ties) {
    this.graphs = ImmutableList.copyOf(graphs);
    graphs.forEach(_ -> sources.add(new LinkedHashMap<>()));
    ties.forEach(this::add);
  }

  ImmutableList<Graph> graphs() {
    return graphs;
  }

  /** {@return the ties that give a graph inputs} */
  Collection<Tie> into(int graph) {
    return sources.get(graph).values();
  }

  /** {@return the ties that take values of a graph} */
  List<Tie> outOf(int graph) {
    return sources.stream()
        .flatMap(own -> own.values().stream())
        .filter(tie -> tie.from() == graph)
        .toList();
  }

  /** {@return whether an earlier graph gives an input} */
  boolean isTied(int graph, Value input) {
    return sources.get(graph).containsKey(input.name());
  }

  /** {@return the input that a tie gives} */
  Value taken(Tie tie) {
    return find(graphs.get(tie.to()).inputs(), tie.input()).orElseThrow();
  }

  private void add(Tie tie) {
    if (tie.to() >= graphs.size()) {
      throw wrong(
          tie.span(),
          "graph %s does not exist".formatted(tie.to()),
          "there are %s, counted from 0".formatted(Units.count(graphs.size(), "graph")));
    }
    var later = graphs.get(tie.to());
    var input = find(later.inputs(), tie.input());
    if (input.isEmpty()) {
      throw noInput(tie, later);
    }
    checkTypes(tie, given(tie).type(), input.get().type());
    if (isCopy(tie)) {
      checkUnwritten(tie, later, input.get());
    }
    if (sources.get(tie.to()).putIfAbsent(tie.input(), tie) != null) {
      throw twice(tie);
    }
  }

  /** {@return the error of a tie to an input that its graph does not have} */
  static CompileException noInput(Tie tie, Graph later) {
    return wrong(
        tie.span(),
        "graph %s has no input '%s'".formatted(tie.to(), tie.input()),
        "inputs: " + names(later.inputs()));
  }

  /** {@return the error of a second tie to an input} */
  static CompileException twice(Tie tie) {
    return wrong(
        tie.span(),
        "input '%s' of graph %s is tied twice".formatted(tie.input(), tie.to()),
        "an input is one tensor");
  }

  /**
   * @throws CompileException when the ends of a tie cannot be one tensor
   */
  static void checkTypes(Tie tie, Type given, Type taken) {
    boolean onlyStridesDiffer = hasSameElements(given, taken);
    if (onlyStridesDiffer && (hasSamePlaces(given, taken) || (tie.copied() && isApart(taken)))) {
      return;
    }
    throw wrong(
        tie.span(),
        "'%s' is %s in graph %s, but '%s' is %s in graph %s"
            .formatted(tie.value(), given, tie.from(), tie.input(), taken, tie.to()),
        !onlyStridesDiffer
            ? "tied tensors have the same type; are these graphs of one capture?"
            : isApart(taken)
                ? ("the strides differ, so it is not one tensor; with \"copy\": true in --ties"
                        + " FILE, graph %s gets a copy with its own strides")
                    .formatted(tie.to())
                : "the strides differ, and no copy can have those of '%s', as its elements overlap"
                    .formatted(tie.input()));
  }

  /** {@return whether the later graph gets a copy, with the strides of its input} */
  boolean isCopy(Tie tie) {
    return !hasSamePlaces(given(tie).type(), taken(tie).type());
  }

  /** What a graph writes into an input would not arrive where the copy came from. */
  private static void checkUnwritten(Tie tie, Graph later, Value input) {
    var views = new HashSet<Value>();
    views.add(input);
    for (var op : later.ops()) {
      if (op.written().stream().anyMatch(views::contains)) {
        throw wrong(
            op.span(),
            "'%s' writes into '%s', but graph %s has other strides for it than graph %s"
                .formatted(op.label(), input.name(), tie.to(), tie.from()),
            "an input that a graph writes into cannot be a copy: capture both graphs with the same"
                + " strides, or tie nothing to '%s'".formatted(input.name()));
      }
      if (op.operands().stream().anyMatch(views::contains)) {
        views.addAll(op.moved());
      }
      var results = op.infer();
      for (int i = 0; i < op.results().size(); i++) {
        if (results.get(i).view().filter(view -> views.contains(view.of())).isPresent()
            || op.sources(i).stream().anyMatch(views::contains)) {
          views.add(op.results().get(i));
        }
      }
    }
  }

  /** {@return the value of the earlier graph that a tie hands on} */
  Value given(Tie tie) {
    var earlier = graphs.get(tie.from());
    var all = Iterables.concat(earlier.outputValues(), earlier.inputs());
    return find(all, tie.value())
        .orElseThrow(
            () ->
                wrong(
                    tie.span(),
                    "graph %s has no output or input '%s'".formatted(tie.from(), tie.value()),
                    "outputs: %s; inputs: %s"
                        .formatted(names(earlier.outputValues()), names(earlier.inputs()))));
  }

  static Optional<Value> find(Iterable<Value> values, String name) {
    for (var value : values) {
      if (value.name().equals(name)) {
        return Optional.of(value);
      }
    }
    return Optional.empty();
  }

  private static String names(List<Value> values) {
    var some = values.stream().limit(8).map(Value::name).toList();
    return String.join(", ", some) + (values.size() > some.size() ? ", …" : "");
  }

  /** The same elements, wherever an input would have to live. */
  private static boolean hasSameElements(Type given, Type taken) {
    return given instanceof TensorType tensor && taken instanceof TensorType input
        ? input.space() == MemorySpace.ANY
            && tensor.dtype() == input.dtype()
            && tensor.sizes().equals(input.sizes())
        : given.equals(taken);
  }

  /** A dimension of one element may have any stride. */
  private static boolean hasSamePlaces(Type given, Type taken) {
    return !(given instanceof TensorType tensor && taken instanceof TensorType input)
        || IntStream.range(0, tensor.rank())
            .allMatch(dim -> tensor.size(dim) == 1 || tensor.stride(dim) == input.stride(dim));
  }

  private static boolean isApart(Type type) {
    return type instanceof TensorType tensor && tensor.liesApart();
  }

  private static CompileException wrong(Span span, String message, String hint) {
    return new CompileException(Diagnostic.error(DiagnosticCode.BAD_TIES, span, message, hint));
  }
}
