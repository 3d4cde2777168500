package dev.symplan.cli;

import com.google.common.base.Ascii;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.PythonLiterals;
import dev.symplan.ir.Value;
import dev.symplan.planner.Plan;
import dev.symplan.planner.RankPlan;
import dev.symplan.planner.report.DecisionText;
import dev.symplan.planner.report.Units;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Rounding;
import dev.symplan.runtime.tensor.TensorDiff;
import java.math.BigDecimal;
import java.math.MathContext;
import java.util.List;
import java.util.Optional;

/**
 * What {@code run} tells: where tensors were, what the collectives did, and whether it is right.
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
        "%s ran on %d rank%s (backend %s, %s)"
            .formatted(
                plan.name(), plan.worldSize(), plan.worldSize() == 1 ? "" : "s", backend, inputs));
    line("");
    memory();
    line("");
    collectives();
    line("");
  }

  private void memory() {
    long local = plan.rankPlans().stream().mapToLong(p -> p.local().bytes()).max().orElse(0);
    var total = plan.total();
    line("memory of each rank at its peak");
    line(
        "  symmetric arena  %9s   at the same offsets on all ranks: peers reach it directly"
            .formatted(Units.bytes(plan.symmetric().bytes())));
    line(
        "  local arena      %9s   what found no place in the symmetric arena"
            .formatted(Units.bytes(local)));
    line(
        "  together         %9s   (%s is the least possible)"
            .formatted(Units.bytes(total.bytes()), Units.bytes(total.bound())));
  }

  private void collectives() {
    var rankPlan = plan.rankPlans().getFirst();
    if (rankPlan.collectives().isEmpty()) {
      line("no collectives");
      return;
    }
    line("collectives, and how their tensors got where peers can reach them");
    for (var collective : rankPlan.collectives()) {
      var op = rankPlan.graph().ops().get(collective.op());
      var name = op.results().isEmpty() ? op.def().name().name() : op.results().getFirst().name();
      line(
          "  %s: %s as %s%s: %s"
              .formatted(
                  name,
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
    }
  }

  void uncompared(String why) {
    line("outputs were not compared: " + why);
  }

  /** {@return whether all outputs agree} */
  boolean compare(Session session, List<List<Optional<HostTensor>>> expected, String with) {
    line("outputs against " + with);
    int outputs = 0;
    int wrong = 0;
    int unspecified = 0;
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      var graph = plan.forRank(rank).graph();
      var rounding = Rounding.of(graph);
      for (int i = 0; i < session.outputCount(); i++) {
        var actual = session.output(rank, i);
        var leftBy = graph.unspecifiedBy(i);
        if (leftBy.isPresent()) {
          unspecified++;
          line(
              "  rank %d  out%d %s  not compared: %s does not write it"
                  .formatted(rank, i, name(plan.forRank(rank), i), leftBy.get().def().name()));
        } else if (actual.isPresent() && expected.get(rank).get(i).isPresent()) {
          var diff = TensorDiff.between(actual.get(), expected.get(rank).get(i).get());
          outputs++;
          var roundedTo = rounding.ofOutput(graph.outputs().get(i));
          wrong += diff.isWithin(roundedTo) ? 0 : 1;
          line(row(rank, i, actual.get(), diff, roundedTo));
        }
      }
    }
    var rest =
        unspecified == 0 ? "" : "; %d that no op writes are not compared".formatted(unspecified);
    line(
        wrong == 0
            ? "ok: all %d outputs agree%s".formatted(outputs, rest)
            : "FAILED: %d of %d outputs differ by more than is allowed%s"
                .formatted(wrong, outputs, rest));
    return wrong == 0;
  }

  private String row(int rank, int index, HostTensor actual, TensorDiff diff, DType roundedTo) {
    return "  rank %d  out%d %s  %s  max abs error %s  relative L2 %s  %s"
        .formatted(
            rank,
            index,
            name(plan.forRank(rank), index),
            actual.type(),
            number(diff.maxAbs()),
            number(diff.relativeL2()),
            diff.isWithin(roundedTo) ? "ok" : "above " + number(diff.limit(roundedTo)));
  }

  private static String name(RankPlan rankPlan, int index) {
    return rankPlan.graph().outputs().get(index) instanceof Arg.Ref(Value value)
        ? value.name()
        : "";
  }

  private static String number(double value) {
    return value == 0
        ? "0"
        : Double.isFinite(value)
            ? PythonLiterals.repr(new BigDecimal(value).round(new MathContext(3)).doubleValue())
            : PythonLiterals.repr(value);
  }
}
