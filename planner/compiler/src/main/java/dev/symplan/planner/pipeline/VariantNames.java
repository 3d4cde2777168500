package dev.symplan.planner.pipeline;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.select.ForcedVariants;
import dev.symplan.planner.plan.Rewrite.Action;

/** The names by which the caller forces variants. */
final class VariantNames {
  private VariantNames() {}

  /**
   * Looks whether each is the name or the kind of a collective, after all rewrites.
   *
   * @throws CompileException when one is not
   */
  static void check(GraphState state, PassContext context) {
    var unknown = new ForcedVariants(state, context).unknown();
    if (unknown.isEmpty()) {
      return;
    }
    var graph = state.graphs().getFirst();
    var names = state.analyses().getFirst().collectives().stream().map(Collective::name).toList();
    throw new CompileException(
        new Diagnostic(
            Diagnostic.Severity.ERROR,
            DiagnosticCode.BAD_OPTION,
            Span.ofFile(graph.span().file()),
            "no collective has the name or kind '%s'".formatted(unknown.iterator().next()),
            names.isEmpty()
                ? "the graph has no collectives"
                : "collectives: " + String.join(", ", names),
            unsplit(state)));
  }

  /** Why there are no pieces that another plan may have named. */
  private static ImmutableList<String> unsplit(GraphState state) {
    return state.get(RewriteSearch.CHUNKS).stream()
        .filter(rewrite -> rewrite.action() == Action.WHOLE)
        .map(
            rewrite ->
                "'%s' was left in one piece: %s"
                    .formatted(rewrite.members().getFirst().name(), rewrite.detail()))
        .collect(toImmutableList());
  }
}
