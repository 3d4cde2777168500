package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveCall;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.ir.op.SliceDims;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Epilogue;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite;
import java.util.List;

/** Each collective with its variant, and below it every other variant and why it was not taken. */
final class CollectivesSection {
  private final Plan plan;
  private final RankIndex index;
  private final Thresholds thresholds;

  private CollectivesSection(Plan plan, RankIndex index) {
    this.plan = plan;
    this.index = index;
    this.thresholds = new Thresholds(plan.target());
  }

  static Section of(Plan plan, RankIndex index) {
    var section = new CollectivesSection(plan, index);
    var collectives = index.plan().collectives();
    var rows = ImmutableList.<Row>builder();
    for (int k = 0; k < collectives.size(); k++) {
      rows.add(section.row(k, collectives.get(k)));
    }
    return new Section(
        View.COLLECTIVES,
        index.ranks(),
        "",
        ImmutableList.of(
            "collective",
            "variant",
            "operand",
            "result",
            "predicted",
            "size",
            "over the link",
            "adds"),
        rows.build(),
        plan.rewrites().stream()
            .filter(Rewrite::made)
            .filter(rewrite -> !rewrite.freesMemory())
            .map(RewriteText::of)
            .collect(ImmutableList.toImmutableList()));
  }

  /** {@return the row of one collective} */
  static Row row(Plan plan, RankIndex index, int k) {
    return new CollectivesSection(plan, index).row(k, index.plan().collectives().get(k));
  }

  private Row row(int k, CollectivePlan collective) {
    var verdict = collective.verdict();
    var kind = Codes.of(collective.kind());
    long bytes = index.operandBytes(collective);
    int ranks = PredictedTimes.groupSize(plan, collective.group());
    double link = collective.spec().wire().bytes(bytes, ranks);
    var numerics = numerics(collective);
    var op = index.plan().graph().ops().get(collective.op());
    return Row.titled(index.name(collective) + " " + kind + along(op))
        .details(
            collective.variant().text() + (collective.isAsync() ? " ∥" : ""),
            addresses(collective.operands(), collective.inPlace()),
            addresses(collective.results(), false),
            Units.micros(verdict.totalMicros()),
            Units.bytes(bytes),
            Units.bytes(Math.round(link)),
            numerics)
        .fact("id", k)
        .fact("name", index.name(collective))
        .fact("kind", kind)
        .fact("op", op.def().name().toString())
        .fact("source", op.span().shortForm())
        .fact("group", collective.group())
        .fact("ranks", ranks)
        .fact("reduce_op", ReduceOp.text(collective.reduceOp()))
        .fact("variant", collective.variant().text())
        .fact("stream", collective.stream().text())
        .fact("step", index.stepOfOp(collective.op()))
        .fact("done_step", index.endOfCollective(k))
        .fact("in_place", collective.inPlace())
        .names("operands", names(collective.operands()))
        .names("results", names(collective.results()))
        .numbers("operand_buffers", buffers(collective.operands()))
        .numbers("result_buffers", buffers(collective.results()))
        .fact("bytes", bytes)
        .fact("link_bytes", link)
        .fact("predicted_us", verdict.totalMicros())
        .fact("copied_bytes", copied(collective))
        .fact("start_barrier", text(collective.start()))
        .fact("end_barrier", text(collective.end()))
        .fact("numerics", numerics)
        .fact(
            "epilogue",
            collective.epilogue().map(epilogue -> Codes.of(epilogue.reason())).orElse(""))
        .fact("epilogue_saves_us", collective.epilogue().map(Epilogue::savedMicros).orElse(0.0))
        .names("better", Improvements.of(plan, index, collective))
        .rows(
            collective.verdicts().stream().map(v -> verdict(collective, v, bytes, ranks)).toList())
        .rows(collective.args().stream().map(this::arg).toList())
        .rows(
            collective
                .epilogue()
                .map(epilogue -> List.of(epilogue(collective, epilogue)))
                .orElse(List.of()))
        .build();
  }

  private Row epilogue(CollectivePlan collective, Epilogue epilogue) {
    return Row.titled("epilogue")
        .details(epilogueText(index, collective, epilogue))
        .fact("fused", epilogue.isFused())
        .fact("reason", Codes.of(epilogue.reason()))
        .fact("stored", epilogue.stored())
        .fact("saves_us", epilogue.savedMicros())
        .build();
  }

  /** {@return for example {@code step 6 runs in its kernel, which saves 2.4 µs}} */
  static String epilogueText(RankIndex index, CollectivePlan collective, Epilogue epilogue) {
    return switch (epilogue.reason()) {
      case FUSED ->
          "step %s runs in its kernel, which saves %s%s"
              .formatted(
                  index.stepOfOp(collective.op()) + 1,
                  Units.micros(epilogue.savedMicros()),
                  epilogue.stored() ? "" : "; the result is not stored");
      case OFF -> "none: switched off";
      case VARIANT -> "none: no other ops run in the kernels of " + collective.variant().text();
      case BESIDE_COMPUTE -> "none: beside compute, the collective takes less time";
      case ROWS -> "none: the next step does not go by rows of the result";
      case LARGE -> "none: the result is large, and a kernel of its own has more blocks";
    };
  }

  /** Along which dimensions slices lie, where that is not the first. */
  private static String along(Op op) {
    var dims = op.collective().map(CollectiveCall::sliceDims).orElse(SliceDims.FIRST);
    if (dims.equals(SliceDims.FIRST)) {
      return "";
    }
    return op.collective().orElseThrow().kind() == Kind.ALL_TO_ALL
        ? " from dim %s to dim %s".formatted(dims.operand(), dims.result())
        : " along dim " + Math.max(dims.operand(), dims.result());
  }

  private String numerics(CollectivePlan collective) {
    return collective.operands().isEmpty()
        ? ""
        : collective
            .spec()
            .numerics()
            .text(index.values().get(collective.operands().getFirst()).tensor().dtype());
  }

  private ImmutableList<String> names(List<Integer> ids) {
    return ids.stream()
        .map(id -> RankIndex.printable(index.values().get(id).name()))
        .collect(ImmutableList.toImmutableList());
  }

  private ImmutableList<Integer> buffers(List<Integer> ids) {
    return ids.stream()
        .map(id -> index.plan().placements().get(id).buffer())
        .collect(ImmutableList.toImmutableList());
  }

  private static long copied(CollectivePlan collective) {
    return collective.args().stream()
        .filter(arg -> arg.realization() == Realization.STAGED)
        .mapToLong(arg -> arg.bytes())
        .sum();
  }

  private Row verdict(CollectivePlan collective, Verdict verdict, long bytes, int ranks) {
    var reason = Codes.of(verdict.reason());
    var threshold =
        verdict.reason().eligible() && !verdict.chosen()
            ? thresholds.text(
                collective.kind(), verdict.variant(), collective.variant(), ranks, bytes)
            : "";
    var row =
        Row.titled(verdict.variant().text())
            .details(verdictText(verdict, threshold))
            .fact("verdict", reason)
            .fact("eligible", verdict.reason().eligible())
            .fact("chosen", verdict.chosen())
            .fact("detail", verdict.detail());
    if (verdict.reason().eligible()) {
      row.fact("transfer_us", verdict.transferMicros())
          .fact("staging_us", verdict.stagingMicros())
          .fact(
              "link_bytes",
              VariantSpec.of(collective.kind(), verdict.variant()).wire().bytes(bytes, ranks))
          .fact("threshold", threshold);
    }
    return row.build();
  }

  private static String verdictText(Verdict verdict, String threshold) {
    if (!verdict.reason().eligible()) {
      return "cannot: " + verdict.detail();
    }
    var text = new StringBuilder(Units.micros(verdict.totalMicros()));
    if (verdict.stagingMicros() > 0) {
      text.append(" (").append(Units.micros(verdict.stagingMicros())).append(" of it for copies)");
    }
    text.append(verdict.detail().isEmpty() ? "" : ", " + verdict.detail());
    text.append(threshold.isEmpty() ? "" : ", " + threshold);
    return text.append(verdict.chosen() ? " ← " + Codes.of(verdict.reason()) : "").toString();
  }

  private Row arg(ArgDecision arg) {
    var because = index.text(arg);
    return Row.titled((arg.result() ? "result " : "operand ") + arg.value())
        .details(because)
        .fact("value", arg.value())
        .fact("result", arg.result())
        .fact("realization", Codes.of(arg.realization()))
        .fact("reason", Codes.of(arg.reason()))
        .fact("cause", arg.cause())
        .fact("bytes", arg.bytes())
        .fact("because", because)
        .build();
  }

  private String addresses(List<Integer> ids, boolean inPlace) {
    if (ids.isEmpty()) {
      return "-";
    }
    var first = index.values().get(ids.getFirst());
    var text = first.name() + (inPlace ? " in place, " : " ") + index.address(first);
    return ids.size() == 1 ? text : text + " and " + (ids.size() - 1) + " more";
  }

  /** {@return the barrier in words, for example {@code the end of r}} */
  private String text(Barrier barrier) {
    return barrierText(index, barrier);
  }

  static String barrierText(RankIndex index, Barrier barrier) {
    return switch (barrier) {
      case Barrier.None _ -> "none";
      case Barrier.Own _ -> "own";
      case Barrier.StandIn(int k, var edge) ->
          "the %s of %s".formatted(edge.text(), index.name(index.plan().collectives().get(k)));
    };
  }
}
