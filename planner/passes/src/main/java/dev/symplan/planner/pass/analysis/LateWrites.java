package dev.symplan.planner.pass.analysis;

import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.joint.ProgramGraph;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Refuses programs in which a graph writes into what an earlier graph gives. The caller could read
 * the output before and after that, and so no single copy of it would be right.
 */
public final class LateWrites {
  private LateWrites() {}

  /** Reports each output of an earlier graph that a later one may write into. */
  public static void check(Analyses analyses, DiagnosticSink sink) {
    var graph = analyses.graph();
    var aliases = analyses.aliases();
    // By family of storages, the output that it was given as.
    Map<Integer, Value> given = new HashMap<>();
    Map<Integer, String> givenBy = new HashMap<>();
    for (var part : ProgramGraph.allOf(graph)) {
      for (var op : graph.ops().subList(part.firstOp(), part.endOp())) {
        Stream.concat(op.written().stream(), op.moved().stream())
            .map(aliases::family)
            .filter(given::containsKey)
            .findFirst()
            .ifPresent(
                family ->
                    sink.report(
                        Diagnostic.error(
                            DiagnosticCode.UNSUPPORTED,
                            op.span(),
                            "graph '%s' writes into '%s', which graph '%s' gives"
                                .formatted(
                                    part.name(), given.get(family).name(), givenBy.get(family)),
                            "have that graph give a copy (aten::clone), or compile with"
                                + " --across-graphs")));
      }
      for (var output : graph.outputs().subList(part.firstOutput(), part.endOutput())) {
        for (var value : output.operands()) {
          int family = aliases.family(value);
          if (family >= 0) {
            given.putIfAbsent(family, value);
            givenBy.putIfAbsent(family, part.name());
          }
        }
      }
    }
  }
}
