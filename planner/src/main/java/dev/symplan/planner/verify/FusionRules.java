package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Op;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.Step;
import dev.symplan.planner.verify.Violation.Rule;

/**
 * Steps that are several ops: each is elementwise and of one shape, so that they can pass each
 * element on. As an element goes through all ops before the next one does, what one op writes must
 * lie apart from all that any of them reads from memory, but for the same elements of what no later
 * op reads.
 */
final class FusionRules {
  private final RankFacts facts;
  private final Findings findings;

  private FusionRules(RankFacts facts, Findings findings) {
    this.facts = facts;
    this.findings = findings;
  }

  static void check(RankFacts facts, Findings findings) {
    var rules = new FusionRules(facts, findings);
    var steps = facts.plan.steps();
    for (int s = 0; s < steps.size(); s++) {
      if (steps.get(s) instanceof Step.Fused(var ops) && rules.areElementwise(s, ops)) {
        rules.checkPlaces(s, ops);
      }
    }
  }

  private boolean areElementwise(int step, ImmutableIntArray ops) {
    for (int i = 0; i < ops.length(); i++) {
      if (!fits(facts.op(ops.get(i)), facts.op(ops.get(0)))) {
        wrong(
            Rule.STRUCTURE,
            step,
            "%s cannot be one kernel with %s"
                .formatted(facts.text(ops.get(i)), facts.text(ops.get(0))));
        return false;
      }
    }
    return true;
  }

  /** Whether an op goes by elements, of the same shape as the first op's. */
  private static boolean fits(Op op, Op first) {
    if (!op.def().has(OpTrait.ELEMENTWISE)
        || op.def().schema().mutates()
        || op.results().size() != 1
        || !(op.result().type() instanceof TensorType type)
        || !(first.results().getFirst().type() instanceof TensorType shape)
        || !type.sizes().equals(shape.sizes())) {
      return false;
    }
    boolean[] pairs = {true};
    op.forEachOperand(value -> pairs[0] &= !value.isTensor() || value.tensor().broadcastsTo(type));
    return pairs[0];
  }

  private void checkPlaces(int step, ImmutableIntArray ops) {
    for (int writer = 0; writer < ops.length(); writer++) {
      for (int result : facts.fresh(ops.get(writer))) {
        for (int other = 0; other < ops.length(); other++) {
          for (int operand : facts.reads(ops.get(other))) {
            // The rest is a read of what the step itself wrote before.
            boolean own = facts.storageOf(operand) == facts.storageOf(result);
            if (!own
                && facts.overlap(operand, result)
                && !(other <= writer && facts.sameElements(operand, result))) {
              clash(step, ops.get(writer), result, "operand", operand);
            }
          }
          for (int second : facts.fresh(ops.get(other))) {
            if (other < writer && facts.overlap(second, result)) {
              clash(step, ops.get(writer), result, "result", second);
            }
          }
        }
      }
    }
  }

  private void clash(int step, int writer, int result, String role, int other) {
    wrong(
        Rule.OVERWRITTEN,
        step,
        "%s writes %s at %s over the step's %s %s at %s"
            .formatted(
                facts.text(writer),
                facts.value(result).name(),
                facts.place(result),
                role,
                facts.value(other).name(),
                facts.place(other)));
  }

  private void wrong(Rule rule, int step, String message) {
    findings.add(rule, facts.rank(), step, message, ImmutableList.of(facts.stepText(step)));
  }
}
