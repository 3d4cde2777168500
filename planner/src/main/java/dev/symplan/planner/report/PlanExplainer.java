package dev.symplan.planner.report;

import com.google.common.base.Ascii;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Op;
import dev.symplan.ir.Value;
import dev.symplan.planner.CollectivePlan;
import dev.symplan.planner.Plan;
import dev.symplan.planner.RankPlan;
import dev.symplan.planner.Rewrite;
import dev.symplan.planner.Verdict;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/** The story of one value or collective: what the plan decided about it, and why. */
public final class PlanExplainer {
  private final RankPlan plan;
  private final List<Rewrite> rewrites;
  private final List<String> lines = new ArrayList<>();

  private PlanExplainer(RankPlan plan, List<Rewrite> rewrites) {
    this.plan = plan;
    this.rewrites = rewrites;
  }

  /** {@return the story, lines ended by line feeds; empty if no rank has a value of this name} */
  public static Optional<String> explain(Plan plan, String name) {
    for (var rankPlan : plan.rankPlans()) {
      var story = new PlanExplainer(rankPlan, plan.rewrites()).explain(name);
      if (story.isPresent()) {
        return story;
      }
    }
    return Optional.empty();
  }

  private Optional<String> explain(String name) {
    for (var input : plan.graph().inputs()) {
      if (input.name().equals(name)) {
        lines.add("%s is an input (%s)".formatted(input, input.span().shortForm()));
        memory(input);
        uses(input);
        return finish();
      }
    }
    for (int i = 0; i < plan.graph().ops().size(); i++) {
      var op = plan.graph().ops().get(i);
      for (var value : op.results()) {
        if (value.name().equals(name)) {
          lines.add(
              "%s is what %s gives (%s)".formatted(value, op.def().name(), op.span().shortForm()));
          memory(value);
          rewrite(name);
          collectiveOf(i).ifPresent(this::choice);
          uses(value);
          return finish();
        }
      }
    }
    return Optional.empty();
  }

  private Optional<String> finish() {
    return Optional.of(lines.stream().map(line -> line + "\n").collect(Collectors.joining()));
  }

  private void memory(Value value) {
    var placement = plan.placement(value);
    if (!placement.exists()) {
      lines.add(
          value.isTensor()
              ? "  memory   none: a fused step passes it on, element by element"
              : "  it has no memory");
      return;
    }
    var buffer = plan.buffers().get(placement.buffer());
    lines.add(
        "  memory   %s, %s of the buffer '%s' (%s), in use from step %s to %s of %s"
            .formatted(
                PlanPrinter.address(plan, value),
                Units.bytes(value.tensor().storageBytes()),
                buffer.name(),
                Units.bytes(buffer.bytes()),
                buffer.first(),
                buffer.last(),
                plan.steps().size()));
  }

  private Optional<CollectivePlan> collectiveOf(int op) {
    return plan.collectives().stream().filter(c -> c.op() == op).findFirst();
  }

  private void choice(CollectivePlan collective) {
    lines.add(
        "  runs as  %s: %s".formatted(collective.variant().text(), collective.variant().summary()));
    for (var verdict : collective.verdicts()) {
      lines.add("    " + text(verdict));
    }
    if (collective.workspace() != CollectivePlan.NO_WORKSPACE) {
      var buffer = plan.buffers().get(collective.workspace());
      lines.add(
          "  through  %s, %s, %s"
              .formatted(
                  buffer.name(), PlanPrinter.address(buffer, 0), Units.bytes(buffer.bytes())));
    }
    for (var arg : collective.args()) {
      lines.add(
          "  %s  %s %s"
              .formatted(
                  arg.result() ? "result " : "operand",
                  arg.value(),
                  DecisionText.of(plan.graph(), arg)));
    }
    if (collective.variant().hasPlannedBarriers()) {
      lines.add(
          "  barriers before: %s, after: %s"
              .formatted(
                  PlanPrinter.text(plan, collective.start()),
                  PlanPrinter.text(plan, collective.end())));
    }
    lines.add(
        collective.isAsync()
            ? "  beside compute, on the %s stream".formatted(collective.stream().text())
            : "  on the compute stream: nothing to run beside it");
  }

  /** What became of the collective of the source that gives this value, or gave it. */
  private void rewrite(String name) {
    for (var rewrite : rewrites) {
      if (rewrite.parts().stream().anyMatch(part -> part.name().equals(name))) {
        lines.add("  " + RewriteText.of(rewrite));
      }
    }
  }

  private static String text(Verdict verdict) {
    var name = verdict.variant().text();
    if (!verdict.reason().eligible()) {
      return "%s cannot: %s".formatted(name, verdict.detail());
    }
    var time =
        Units.micros(verdict.totalMicros())
            + (verdict.stagingMicros() > 0
                ? " (%s of it copies)".formatted(Units.micros(verdict.stagingMicros()))
                : "")
            + (verdict.detail().isEmpty() ? "" : ", " + verdict.detail());
    return "%s %s%s"
        .formatted(
            name, time, verdict.chosen() ? " ← " + Ascii.toLowerCase(verdict.reason().name()) : "");
  }

  private void uses(Value value) {
    for (int i = 0; i < plan.graph().ops().size(); i++) {
      var op = plan.graph().ops().get(i);
      if (reads(op, value)) {
        var collective = collectiveOf(i);
        lines.add(
            "  read by  %s (%s)%s"
                .formatted(
                    op.def().name(),
                    op.span().shortForm(),
                    collective.map(c -> " as " + c.variant().text()).orElse("")));
      }
    }
    if (plan.graph().outputs().stream()
        .anyMatch(o -> o instanceof Arg.Ref(var v) && v.id() == value.id())) {
      lines.add("  returned by the graph");
    }
  }

  private static boolean reads(Op op, Value value) {
    boolean[] found = {false};
    op.forEachOperand(v -> found[0] |= v.id() == value.id());
    return found[0];
  }
}
