package dev.symplan.planner.pass.select;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.machine.Verdict.Reason;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.select.ForcedVariants.Forced;
import java.util.List;
import java.util.Optional;

/** Finds the variant that the graph or the caller names, if the collective can run so. */
final class NamedVariants {
  private NamedVariants() {}

  /** {@return the variant that the graph names; a group of one rank has no choice} */
  static Optional<Verdict> ofGraph(Collective collective, List<Verdict> candidates, String name) {
    var found = candidates.stream().filter(v -> v.variant().text().equals(name)).findFirst();
    if (found.isPresent()
        && (found.get().reason().eligible() || found.get().reason() == Reason.GROUP_SIZE)) {
      return found.filter(verdict -> verdict.reason().eligible());
    }
    throw badOption(
        collective.op().span(),
        "the graph names %s for '%s', but %s"
            .formatted(
                name,
                collective.name(),
                found
                    .map(verdict -> "it cannot run so: " + verdict.detail())
                    .orElse("%s has no such variant".formatted(collective.kind().text()))),
        "--free-variants lets the planner choose; eligible: " + eligibleNames(candidates));
  }

  /** {@return the variant that the caller forces; a group of one rank may have no choice} */
  static Optional<Verdict> forced(Collective collective, List<Verdict> candidates, Forced forced) {
    var wanted = forced.variant();
    for (var verdict : candidates) {
      if (verdict.variant() != wanted) {
        continue;
      }
      // A group of one has nothing to force when the option speaks of all collectives of a kind.
      if (verdict.reason() == Reason.GROUP_SIZE && wanted != Variant.LOCAL && !forced.byName()) {
        return Optional.empty();
      }
      if (!verdict.reason().eligible()) {
        throw badOption(
            collective.op().span(),
            "'%s' cannot run as %s: %s"
                .formatted(collective.name(), wanted.text(), verdict.detail()),
            "eligible: " + eligibleNames(candidates));
      }
      return Optional.of(verdict);
    }
    throw badOption(
        collective.op().span(),
        "%s does not exist for '%s'".formatted(wanted.text(), collective.name()),
        "eligible: " + eligibleNames(candidates));
  }

  private static String eligibleNames(List<Verdict> candidates) {
    return String.join(
        ", ",
        candidates.stream()
            .filter(v -> v.reason().eligible())
            .map(v -> v.variant().text())
            .toList());
  }

  private static CompileException badOption(Span span, String message, String hint) {
    return new CompileException(Diagnostic.error(DiagnosticCode.BAD_OPTION, span, message, hint));
  }
}
