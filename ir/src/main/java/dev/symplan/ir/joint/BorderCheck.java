package dev.symplan.ir.joint;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import java.util.HashSet;
import java.util.List;

/**
 * Checks that the graphs between borders can run one by one: each takes and gives what it says, and
 * all ranks have the same ones.
 */
public final class BorderCheck {
  private final Graph graph;
  private final DiagnosticSink sink;

  private BorderCheck(Graph graph, DiagnosticSink sink) {
    this.graph = graph;
    this.sink = sink;
  }

  /** Reports what is wrong with the borders of the per-rank versions of a graph. */
  public static void check(List<Graph> versions, DiagnosticSink sink) {
    if (versions.stream()
        .allMatch(graph -> Parallel.filter(graph.ops(), ProgramGraph::isBorder).isEmpty())) {
      return;
    }
    for (var graph : versions) {
      new BorderCheck(graph, sink).check();
    }
    if (sink.hasErrors()) {
      return;
    }
    var expected = signature(versions.getFirst());
    for (var other : versions) {
      if (!signature(other).equals(expected)) {
        sink.report(
            Diagnostic.error(
                DiagnosticCode.RANKS_DISAGREE,
                other.span(),
                "the borders between the graphs of the program differ between ranks",
                "all ranks have the same symplan::border ops"));
        return;
      }
    }
  }

  /** The graph after each border, and where its inputs and outputs begin. */
  private static ImmutableList<ImmutableList<?>> signature(Graph graph) {
    return graph.ops().stream()
        .filter(ProgramGraph::isBorder)
        .map(op -> ImmutableList.copyOf(op.args()))
        .collect(toImmutableList());
  }

  private void check() {
    ImmutableList<ProgramGraph> parts;
    try {
      parts = ProgramGraph.allOf(graph);
    } catch (IllegalArgumentException e) {
      wrong(
          graph.ops().stream().filter(ProgramGraph::isBorder).findFirst().orElseThrow().span(),
          String.valueOf(e.getMessage()),
          "each border counts the inputs and outputs of all graphs before it");
      return;
    }
    var names = new HashSet<String>();
    for (var part : parts) {
      if (!names.add(part.name())) {
        wrong(
            graph.ops().get(part.firstOp() - 1).span(),
            "two graphs of the program are called '%s'".formatted(part.name()),
            "sessions run them by name");
      }
    }
    checkUses(parts);
  }

  private void checkUses(List<ProgramGraph> parts) {
    var madeIn = new int[graph.valueCount()];
    for (int g = 0; g < parts.size(); g++) {
      int index = g;
      graph
          .inputs()
          .subList(parts.get(g).firstInput(), parts.get(g).endInput())
          .forEach(input -> madeIn[input.id()] = index);
    }
    for (int g = 0; g < parts.size(); g++) {
      int index = g;
      for (var op : graph.ops().subList(parts.get(g).firstOp(), parts.get(g).endOp())) {
        op.operands().stream()
            .filter(value -> madeIn[value.id()] > index)
            .findFirst()
            .ifPresent(
                value ->
                    wrong(
                        op.span(),
                        "'%s' is an input of graph '%s', which runs later"
                            .formatted(value.name(), parts.get(madeIn[value.id()]).name()),
                        "make it an input of graph '%s'".formatted(parts.get(index).name())));
        op.results().forEach(result -> madeIn[result.id()] = index);
      }
    }
    for (int g = 0; g < parts.size(); g++) {
      for (var output :
          graph.outputs().subList(parts.get(g).firstOutput(), parts.get(g).endOutput())) {
        int index = g;
        output.operands().stream()
            .filter(value -> madeIn[value.id()] > index)
            .findFirst()
            .ifPresent(
                value ->
                    wrong(
                        value.span(),
                        "graph '%s' gives '%s', which a later graph makes"
                            .formatted(parts.get(index).name(), value.name()),
                        "each border counts the outputs of all graphs before it"));
      }
    }
  }

  private void wrong(Span span, String message, String hint) {
    sink.report(Diagnostic.error(DiagnosticCode.BAD_TIES, span, message, hint));
  }
}
