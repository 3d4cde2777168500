package dev.symplan.planner.pipeline;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.Sets;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.select.ForcedVariants;
import dev.symplan.planner.plan.Rewrite.Action;
import java.util.List;
import java.util.stream.Stream;

/** The names by which the caller forces variants. */
final class VariantNames {
  private VariantNames() {}

  /**
   * Looks whether each is the name or the kind of a collective of any stage, after all rewrites.
   *
   * @throws CompileException when one is not
   */
  static void check(List<GraphState> stages, PassContext context) {
    var unknown =
        stages.stream()
            .map(stage -> new ForcedVariants(stage, context).unknown())
            .reduce((a, b) -> Sets.intersection(a, b).immutableCopy())
            .orElseThrow();
    if (unknown.isEmpty()) {
      return;
    }
    var names =
        stages.stream()
            .flatMap(stage -> stage.analyses().getFirst().collectives().stream())
            .map(Collective::name)
            .distinct()
            .toList();
    throw new CompileException(
        new Diagnostic(
            Diagnostic.Severity.ERROR,
            DiagnosticCode.BAD_OPTION,
            Span.ofFile(stages.getFirst().graphs().getFirst().span().file()),
            "no collective has the name or kind '%s'".formatted(unknown.iterator().next()),
            names.isEmpty()
                ? "the graph has no collectives"
                : "collectives: " + String.join(", ", names),
            stages.stream().flatMap(VariantNames::unsplit).collect(toImmutableList())));
  }

  /** Why there are no pieces that another plan may have named. */
  private static Stream<String> unsplit(GraphState state) {
    return state.get(RewriteSearch.CHUNKS).stream()
        .filter(rewrite -> rewrite.action() == Action.WHOLE)
        .map(
            rewrite ->
                "'%s' was left in one piece: %s"
                    .formatted(rewrite.members().getFirst().name(), rewrite.detail()));
  }
}
