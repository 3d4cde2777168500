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

  /** {@return how the outputs of the ranks of this process compare} */
  Compared compare(Session session, List<List<Optional<HostTensor>>> expected) {
    var all = Compared.NOTHING;
    for (int rank : session.localRanks()) {
      var rounding = Rounding.of(plan.forRank(rank).graph());
      for (int i = 0; i < session.outputCount(); i++) {
        all = all.plus(compare(session, rank, i, expected.get(rank).get(i), rounding));
      }
    }
    return all;
  }

  private Compared compare(
      Session session, int rank, int index, Optional<HostTensor> expected, Rounding rounding) {
    var graph = plan.forRank(rank).graph();
    var actual = session.output(rank, index);
    var leftBy = graph.unspecifiedBy(index);
    if (leftBy.isPresent()) {
      var row =
          "  rank %d  out%d %s  not compared: %s does not write it\n"
              .formatted(rank, index, name(plan.forRank(rank), index), leftBy.get().def().name());
      return new Compared(row, 0, 0, 1);
    }
    if (actual.isEmpty() || expected.isEmpty()) {
      return Compared.NOTHING;
    }
    var diff = TensorDiff.between(actual.get(), expected.get());
    var roundedTo = rounding.ofOutput(graph.outputs().get(index));
    return new Compared(
        row(rank, index, actual.get(), diff, roundedTo) + "\n",
        1,
        diff.isWithin(roundedTo) ? 0 : 1,
        0);
  }

  /** Tells how all outputs compare. */
  void compared(Compared all, String with) {
    line("outputs against " + with);
    console.print(all.rows());
    var rest =
        all.unspecified() == 0
            ? ""
            : "; %d that no op writes are not compared".formatted(all.unspecified());
    line(
        all.wrong() == 0
            ? "ok: all %d outputs agree%s".formatted(all.outputs(), rest)
            : "FAILED: %d of %d outputs differ by more than is allowed%s"
                .formatted(all.wrong(), all.outputs(), rest));
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
