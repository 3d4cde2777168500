package dev.symplan.cli;

import com.google.common.base.Ascii;
import com.google.common.collect.Maps;
import dev.symplan.cli.common.Console;
import dev.symplan.ir.Arg;
import dev.symplan.ir.PythonLiterals;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveCall;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.DecisionText;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.check.OutputCheck;
import dev.symplan.runtime.check.TruthCheck;
import dev.symplan.runtime.tensor.HostTensor;
import java.math.BigDecimal;
import java.math.MathContext;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/**
 * The output of {@code run}: where tensors were, how collectives ran, and whether the results are
 * right.
 */
final class RunReport {
  private final Plan plan;
  private final Console console;

  RunReport(Plan plan, Console console) {
    this.plan = plan;
    this.console = console;
  }

  private void line(String text) {
    console.print(text + "\n");
  }

  void describe(String backend, String inputs) {
    line(
        "%s ran on %s (backend %s, %s)"
            .formatted(plan.name(), Units.count(plan.worldSize(), "rank"), backend, inputs));
    line("");
    memory();
    line("");
    collectives();
    line("");
  }

  private void memory() {
    long local = plan.rankPlans().stream().mapToLong(p -> p.local().bytes()).max().orElse(0);
    var total = plan.total();
    line("peak memory of each rank");
    line(
        "  symmetric arena  %9s   at the same offsets on all ranks, so peers can access it"
            .formatted(Units.bytes(plan.symmetric().bytes())));
    line(
        "  local arena      %9s   tensors that do not fit into the symmetric arena"
            .formatted(Units.bytes(local)));
    line(
        "  together         %9s   (lower bound: %s)"
            .formatted(Units.bytes(total.bytes()), Units.bytes(total.bound())));
  }

  private void collectives() {
    var rankPlan = plan.rankPlans().getFirst();
    if (rankPlan.collectives().isEmpty()) {
      line("no collectives");
      return;
    }
    line("collectives, and where their tensors are");
    for (var collective : rankPlan.collectives()) {
      var op = rankPlan.graph().ops().get(collective.op());
      line(
          "  %s: %s as %s%s: %s"
              .formatted(
                  op.label(),
                  Ascii.toLowerCase(collective.kind().name()),
                  collective.variant().text(),
                  collective.isAsync() ? ", beside compute" : "",
                  collective.variant().summary()));
      for (var arg : collective.args()) {
        line(
            "      %s %s %s (%s)"
                .formatted(
                    arg.result() ? "result " : "operand",
                    arg.value(),
                    DecisionText.of(rankPlan.graph(), arg),
                    Units.bytes(arg.bytes())));
      }
      line("      " + way(collective) + ": " + reason(op, collective) + ".");
    }
  }

  private static String way(CollectivePlan collective) {
    if (collective.variant().needsWorkspace()) {
      return "The tensors pass through a workspace in symmetric memory";
    }
    var realizations = collective.args().stream().map(ArgDecision::realization).toList();
    if (realizations.contains(Realization.STAGED)) {
      return "Tensors are copied into or out of symmetric memory";
    }
    return realizations.contains(Realization.ZERO_COPY)
        ? "Peers access the tensors in symmetric memory without a copy"
        : "The tensors stay where they are";
  }

  private static String reason(Op op, CollectivePlan collective) {
    var chosen = collective.verdict();
    var others =
        collective.verdicts().stream().filter(v -> v.reason().eligible() && !v.chosen()).toList();
    if (others.isEmpty()) {
      return "no other variant can run here";
    }
    if (chosen.reason() == Verdict.Reason.FORCED) {
      var variant = chosen.variant().text();
      var named = op.collective().flatMap(CollectiveCall::algorithm);
      return (named.equals(Optional.of(variant)) ? "the graph names " : "the options force ")
          + variant;
    }
    var next = Collections.min(others, Comparator.comparingDouble(Verdict::totalMicros));
    if (next.reason() == Verdict.Reason.NOT_WORTH_MEMORY) {
      return "%s is predicted to take %s; %s, with %s, gains too little for the memory of its workspace"
          .formatted(
              chosen.variant().text(),
              Units.micros(chosen.totalMicros()),
              next.variant().text(),
              Units.micros(next.totalMicros()));
    }
    return chosen.variant().text()
        + " is predicted to be the fastest"
        + (collective.isAsync()
            ? " beside compute"
            : ", with %s; the next is %s, with %s"
                .formatted(
                    Units.micros(chosen.totalMicros()),
                    next.variant().text(),
                    Units.micros(next.totalMicros())));
  }

  void uncompared(String why) {
    line("outputs were not compared: " + why);
  }

  /** {@return how the outputs of the ranks of this process compare} */
  Compared compare(Session session, List<List<Optional<HostTensor>>> expected) {
    var all = Compared.NOTHING;
    for (int rank : session.localRanks()) {
      var checks =
          Maps.uniqueIndex(
              OutputCheck.of(plan, session, rank, expected.get(rank)), OutputCheck::index);
      for (int i = 0; i < session.outputCount(rank); i++) {
        var leftBy = plan.forRank(rank).graph().unspecifiedBy(i);
        var check = checks.get(i);
        if (leftBy.isPresent()) {
          var by = "not compared: %s does not write it".formatted(leftBy.get().def().name());
          all = all.plus(new Compared(row(rank, i, by), 0, 0, 1));
        } else if (check != null) {
          all = all.plus(new Compared(row(rank, i, text(check)), 1, check.agrees() ? 0 : 1, 0));
        }
      }
    }
    return all;
  }

  /** {@return the comparison, with outputs that rounding explains no longer wrong} */
  Compared judged(Compared before, TruthCheck.Outcome outcome) {
    return switch (outcome) {
      case TruthCheck.Unknown(var reason) ->
          before.plus(new Compared("  not compared with f64: %s\n".formatted(reason), 0, 0, 0));
      case TruthCheck.Judged judged -> {
        var rows = new StringBuilder(before.rows()).append("and against an evaluation in f64\n");
        for (var distance : judged.outputs()) {
          rows.append(
              row(
                  distance.rank(),
                  distance.index(),
                  "relative L2 %s, of the expected output %s  %s"
                      .formatted(
                          number(distance.actual()),
                          number(distance.expected()),
                          verdict(distance))));
        }
        for (var choice : judged.choices()) {
          rows.append(
              "  rank %s  %s differs in %s of %s elements  %s\n"
                  .formatted(
                      choice.rank(),
                      choice.op(),
                      choice.differing(),
                      choice.elements(),
                      choice.fault().orElse("ok: rounding explains it")));
        }
        long wrong = judged.outputs().stream().filter(d -> !d.agrees()).count();
        yield new Compared(
            rows.toString(),
            before.outputs(),
            judged.agrees() ? 0 : Math.max(1, Math.toIntExact(wrong)),
            before.unspecified());
      }
    };
  }

  private static String verdict(TruthCheck.Distance distance) {
    if (distance.agrees()) {
      return "ok";
    }
    return distance.expectedAgrees()
        ? "too far from f64"
        : "the expected output does not belong to this graph";
  }

  /** Prints how all outputs compare. */
  void compared(Compared all, String with) {
    line("outputs against " + with);
    console.print(all.rows());
    var rest =
        all.unspecified() == 0
            ? ""
            : "; %s that no op writes were not compared".formatted(all.unspecified());
    line(
        all.wrong() == 0
            ? "ok: %s%s"
                .formatted(
                    all.outputs() == 1
                        ? "the output agrees"
                        : "all %s outputs agree".formatted(all.outputs()),
                    rest)
            : "FAILED: %s of %s %s by more than the tolerance%s"
                .formatted(
                    all.wrong(),
                    Units.count(all.outputs(), "output"),
                    all.wrong() == 1 ? "differs" : "differ",
                    rest));
  }

  private String row(int rank, int index, String text) {
    var name =
        plan.forRank(rank).graph().outputs().get(index) instanceof Arg.Ref(Value value)
            ? value.name()
            : "";
    return "  rank %s  out%s %s  %s\n".formatted(rank, index, name, text);
  }

  private static String text(OutputCheck check) {
    var diff = check.difference();
    return "%s  max abs error %s  relative L2 %s  %s"
        .formatted(
            check.type(),
            number(diff.maxAbs()),
            number(diff.relativeL2()),
            check.agrees() ? "ok" : "above " + number(diff.limit(check.roundedTo())));
  }

  private static String number(double value) {
    return value == 0
        ? "0"
        : Double.isFinite(value)
            ? PythonLiterals.repr(new BigDecimal(value).round(new MathContext(3)).doubleValue())
            : PythonLiterals.repr(value);
  }
}
