package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Topology.Reach;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import java.util.Optional;
import java.util.stream.Stream;

/** How a collective could be improved. */
final class Improvements {
  private Improvements() {}

  /** {@return the changes that would save copies, and the needs of faster variants} */
  static ImmutableList<String> of(Plan plan, RankIndex index, CollectivePlan collective) {
    return Stream.concat(
            collective.args().stream().flatMap(arg -> copy(arg).stream()),
            variants(plan, index, collective).stream())
        .collect(ImmutableList.toImmutableList());
  }

  /**
   * {@return the change that would save the copy of a tensor, if it has one and any change would}
   */
  static Optional<String> copy(ArgDecision arg) {
    if (arg.realization() != Realization.STAGED) {
      return Optional.empty();
    }
    var what =
        switch (arg.reason()) {
          case NOT_CONTIGUOUS -> "a contiguous %s would save".formatted(arg.value());
          case NOT_ALIGNED ->
              "a %s that begins at a multiple of 16 bytes would save".formatted(arg.value());
          case EXTERNAL_INPUT ->
              "an input %s in the arena (--place %s=symm, or --donate %s) would save"
                  .formatted(arg.cause(), arg.cause(), arg.cause());
          case EXTERNAL_OUTPUT ->
              "an output %s in the arena (--place %s=symm) would save"
                  .formatted(arg.value(), arg.value());
          case MAY_HAVE_MOVED ->
              "the schema of the op that may have moved %s (--declare FILE) would save"
                  .formatted(arg.cause());
          case RANKS_DIFFER ->
              "graphs that treat %s alike on all ranks would save".formatted(arg.value());
          case PRODUCER_WRITES,
              PLANNED_INPUT,
              COLLECTIVE_RESULT,
              RESULT_WRITES,
              IN_PLACE,
              WRITES_ROWS,
              READS_ROWS,
              VARIANT_READS_ANYWHERE ->
              "";
        };
    return what.isEmpty()
        ? Optional.empty()
        : Optional.of("%s a copy of %s".formatted(what, Units.bytes(arg.bytes())));
  }

  /** {@return which variants that cannot run here would be faster, and what they lack} */
  static ImmutableList<String> variants(Plan plan, RankIndex index, CollectivePlan collective) {
    int ranks = PredictedTimes.groupSize(plan, collective.group());
    long bytes = index.operandBytes(collective);
    var costs = new CostModel(plan.target());
    int tensors = collective.operands().size();
    var reach = Reach.within(ranks);
    double now =
        costs.transferMicros(collective.kind(), collective.variant(), bytes, tensors, reach);
    var better = ImmutableList.<String>builder();
    for (var verdict : collective.verdicts()) {
      var spec = VariantSpec.of(collective.kind(), verdict.variant());
      if (verdict.reason().eligible()
          || ranks < 2
          || verdict.variant() == Variant.LOCAL
          || !spec.numerics().isSameOnAllRanks()) {
        continue;
      }
      double then =
          costs.transferMicros(collective.kind(), verdict.variant(), bytes, tensors, reach);
      if (then < now) {
        better.add(
            "%s alone would take %s instead of %s, but: %s"
                .formatted(
                    verdict.variant().text(),
                    Units.micros(then),
                    Units.micros(now),
                    verdict.detail()));
      }
    }
    return better.build();
  }
}
