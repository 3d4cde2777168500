package dev.symplan.ir;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.op.OpTrait;
import java.util.ArrayList;
import java.util.List;

/**
 * Checks that the per-rank versions of a graph can run together: the same inputs, and the same
 * collectives in the same order on tensors of the same types. Local code may differ, and so may the
 * names of groups.
 */
public final class RankAgreement {
  private final Graph first;
  private final Graph other;
  private final DiagnosticSink sink;

  private RankAgreement(Graph first, Graph other, DiagnosticSink sink) {
    this.first = first;
    this.other = other;
    this.sink = sink;
  }

  /** Reports the first disagreement of each graph with the first one of its name. */
  public static void check(Program program, DiagnosticSink sink) {
    var seen = new ArrayList<Graph>();
    for (var graph : program.graphs()) {
      var earlier = seen.stream().filter(g -> g.name().equals(graph.name())).findFirst();
      earlier.ifPresentOrElse(
          reference -> new RankAgreement(reference, graph, sink).check(), () -> seen.add(graph));
    }
  }

  private void check() {
    if (!types(first.inputs()).equals(types(other.inputs()))) {
      report(other.span(), first.span(), "the ranks' inputs differ");
      return;
    }
    if (!types(outputs(first)).equals(types(outputs(other)))) {
      report(other.span(), first.span(), "the ranks' outputs differ");
      return;
    }
    var expected = collectives(first);
    var found = collectives(other);
    for (int i = 0; i < Math.min(expected.size(), found.size()); i++) {
      var a = expected.get(i);
      var b = found.get(i);
      if (!describe(a).equals(describe(b))) {
        report(
            b.span(),
            a.span(),
            "collective %d is %s here, but %s on other ranks"
                .formatted(i, describe(b), describe(a)));
        return;
      }
    }
    if (expected.size() != found.size()) {
      boolean more = found.size() > expected.size();
      var extra = more ? found.get(expected.size()) : expected.get(found.size());
      report(
          more ? extra.span() : other.span(),
          more ? first.span() : extra.span(),
          "the ranks have %d and %d collectives".formatted(expected.size(), found.size()));
    }
  }

  private void report(Span here, Span there, String message) {
    sink.report(
        new Diagnostic(
            Diagnostic.Severity.ERROR,
            DiagnosticCode.RANKS_DISAGREE,
            here,
            message,
            "capture all ranks in one run of one program",
            ImmutableList.of("the other rank's is at " + there)));
  }

  private static List<Type> types(List<Value> values) {
    return values.stream().map(Value::type).toList();
  }

  private static List<Value> outputs(Graph graph) {
    var values = new ArrayList<Value>();
    graph.outputs().forEach(output -> output.forEachValue(values::add));
    return values;
  }

  private static List<Op> collectives(Graph graph) {
    return graph.ops().stream()
        .filter(op -> op.def().collective().isPresent() && !op.def().has(OpTrait.WAIT))
        .toList();
  }

  /** Everything about a collective that ranks must agree on, but for the group's name. */
  private static String describe(Op op) {
    var spec = op.def().collective().orElseThrow();
    var text = new StringBuilder(op.def().name().toString()).append('(');
    var schema = op.def().schema();
    for (int i = 0; i < schema.params().size(); i++) {
      var name = schema.params().get(i).name();
      // Ranks may send different numbers of rows to each other.
      if (!name.equals(spec.group()) && !name.endsWith("split_sizes")) {
        text.append(i > 0 ? ", " : "").append(describe(op.args().get(i)));
      }
    }
    return text.append(')').toString();
  }

  private static String describe(Arg arg) {
    return switch (arg) {
      case Arg.Ref(Value value) -> value.type().toString();
      case Arg.Seq(ImmutableList<Arg> items) ->
          items.stream().map(RankAgreement::describe).toList().toString();
      case Arg.Int(long value) -> Long.toString(value);
      case Arg.Str(String value) -> value;
      case Arg.Float _, Arg.Bool _, Arg.Dtype _, Arg.Symbol _, Arg.Device _, Arg.None _ ->
          arg.toString();
    };
  }
}
