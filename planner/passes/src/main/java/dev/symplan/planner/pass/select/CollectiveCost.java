package dev.symplan.planner.pass.select;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Maps;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Topology.Reach;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import org.jspecify.annotations.Nullable;

/**
 * The cost of a collective of some tensors, for each variant with its copies, before one is chosen.
 *
 * @param reach how the ranks of its group lie
 * @param bytes of one rank's operands, on the rank that sends most
 * @param tensors how many it sends
 * @param copies the time of the copies of each variant that can be used, in µs
 */
public record CollectiveCost(
    Kind kind, Reach reach, long bytes, int tensors, ImmutableMap<Variant, Double> copies) {

  /** {@return the cost of the {@code k}-th collective, for which variants have been selected} */
  public static CollectiveCost of(GraphState state, int k, long bytes, PassContext context) {
    var collective = state.analyses().getFirst().collectives().get(k);
    @Nullable Variant wanted = context.options().variants().get(collective.kind().text());
    var copies = ImmutableMap.<Variant, Double>builder();
    for (var verdict : state.get(SelectVariants.SELECTIONS).get(k).verdicts()) {
      boolean open =
          wanted == null
              ? verdict.reason() != Verdict.Reason.NOT_NAMED
              : wanted == verdict.variant();
      if (open && verdict.reason().eligible()) {
        copies.put(verdict.variant(), verdict.stagingMicros());
      }
    }
    return new CollectiveCost(
        collective.kind(),
        context.reach(collective.group()),
        bytes,
        collective.operands().size(),
        copies.buildOrThrow());
  }

  /** {@return the time of the variant that was selected, with its copies} */
  public static double chosenMicros(GraphState state, int k) {
    return state.get(SelectVariants.SELECTIONS).get(k).verdicts().stream()
        .filter(Verdict::chosen)
        .findFirst()
        .orElseThrow()
        .totalMicros();
  }

  /** {@return the cost of both as one} */
  public CollectiveCost with(CollectiveCost other) {
    var sum = ImmutableMap.<Variant, Double>builder();
    copies.forEach(
        (variant, own) -> {
          @Nullable Double others = other.copies.get(variant);
          if (others != null) {
            sum.put(variant, own + others);
          }
        });
    return new CollectiveCost(
        kind, reach, bytes + other.bytes, tensors + other.tensors, sum.buildOrThrow());
  }

  /** {@return the cost of one of so many equal parts, whose tensors nothing else uses} */
  public CollectiveCost part(int parts) {
    return new CollectiveCost(
        kind,
        reach,
        bytes / parts,
        tensors,
        ImmutableMap.copyOf(Maps.transformValues(copies, _ -> 0.0)));
  }

  /**
   * {@return the time of the cheapest variant, in µs; infinite if none exists}
   *
   * @param room the compute that may run beside it, in µs
   */
  public double micros(double room, CostModel costs, Select select) {
    double best = Double.POSITIVE_INFINITY;
    for (var entry : copies.entrySet()) {
      var variant = entry.getKey();
      if (tensors == 1 || select.takesSeveral(VariantSpec.of(kind, variant))) {
        double transfer = costs.transferMicros(kind, variant, bytes, tensors, reach);
        best = Math.min(best, select.shownMicros(variant, transfer, room) + entry.getValue());
      }
    }
    return best;
  }
}
