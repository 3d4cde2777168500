package dev.symplan.planner.pass.analysis;

import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.joint.ProgramGraph;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Refuses programs in which a graph writes into what an earlier graph gives. The caller could read
 * the output before and after that, and so no single copy of it would be right.
 */
public final class LateWrites {

  /**
   * An output.
   *
   * @param by the name of the graph that gives it
   */
  private record Given(Value value, String by) {}

  private final Analyses analyses;
  private final DiagnosticSink sink;

  /** By family of storages, what earlier graphs gave. */
  private final Map<Integer, Given> given = new HashMap<>();

  private LateWrites(Analyses analyses, DiagnosticSink sink) {
    this.analyses = analyses;
    this.sink = sink;
  }

  /** Reports each op that may write into an output of an earlier graph. */
  public static void check(Analyses analyses, DiagnosticSink sink) {
    new LateWrites(analyses, sink).check();
  }

  private void check() {
    var graph = analyses.graph();
    var parts = ProgramGraph.allOf(graph);
    if (parts.size() == 1) {
      return;
    }
    for (var part : parts) {
      graph.ops().subList(part.firstOp(), part.endOp()).forEach(op -> check(op, part.name()));
      for (var output : graph.outputs().subList(part.firstOutput(), part.endOutput())) {
        for (var value : output.operands()) {
          int family = analyses.aliases().family(value);
          if (family >= 0) {
            given.putIfAbsent(family, new Given(value, part.name()));
          }
        }
      }
    }
  }

  private void check(Op op, String writer) {
    if (given.isEmpty()) {
      return;
    }
    var changed = Stream.concat(op.written().stream(), op.moved().stream()).distinct().toList();
    for (var value : changed) {
      @Nullable Given output = given.get(analyses.aliases().family(value));
      if (output != null) {
        sink.report(
            Diagnostic.error(
                DiagnosticCode.UNSUPPORTED,
                op.span(),
                "graph '%s' writes into '%s', which graph '%s' gives"
                    .formatted(writer, output.value().name(), output.by()),
                "have that graph give a copy (aten::clone), or compile with --across-graphs"));
        return;
      }
    }
  }
}
