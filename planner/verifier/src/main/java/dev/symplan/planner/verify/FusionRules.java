package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Rows;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.HashSet;

/**
 * Steps that are several ops: each goes by the rows that all have in common ({@link Rows}), so that
 * they can pass each row on. As a row goes through all ops before the next one does, what one op
 * writes must lie apart from all that any of them reads from memory, but for the same rows of what
 * no later op reads.
 *
 * <p>A step of one op is checked, too, if it runs in the kernel of a collective.
 */
final class FusionRules {
  private final AliasModel facts;
  private final Findings findings;

  private FusionRules(AliasModel facts, Findings findings) {
    this.facts = facts;
    this.findings = findings;
  }

  static void check(AliasModel facts, Findings findings) {
    findings.addAll(
        facts.plan.steps().size(), (step, found) -> new FusionRules(facts, found).check(step));
  }

  private void check(int step) {
    boolean behind = facts.plan.epilogueOf(step) >= 0;
    var ops =
        switch (facts.plan.steps().get(step)) {
          case Step.Fused(var fused) -> fused;
          // In the kernel of a collective, one op goes by rows as several do.
          case Step.Compute(int op) when behind -> ImmutableIntArray.of(op);
          case Step.Compute _, Step.Start _, Step.Join _ -> ImmutableIntArray.of();
        };
    if (!ops.isEmpty()) {
      check(step, ops);
    }
  }

  private void check(int step, ImmutableIntArray ops) {
    var all = ops.stream().mapToObj(facts::op).collect(ImmutableList.toImmutableList());
    for (int i = 0; i < ops.length(); i++) {
      if (!isPure(all.get(i))) {
        cannot(step, ops, i);
        return;
      }
    }
    // Only ops that have results have rows.
    int rows = Rows.shared(all);
    if (goByRows(step, ops, all, rows)) {
      checkAddresses(step, ops, rows);
    }
  }

  private boolean goByRows(int step, ImmutableIntArray ops, ImmutableList<Op> all, int rows) {
    var made = new HashSet<Integer>();
    for (int i = 0; i < ops.length(); i++) {
      var op = all.get(i);
      boolean fits = rows > 0 || op.results().getFirst().tensor().rank() == 0;
      for (var value : op.operands()) {
        // A value with rows in the step must be read by rows, not through another view of it; an
        // op that pairs elements must get pairs.
        boolean isMade = made.contains(value.id());
        fits &= isMade || !isMadeIn(ops, value);
        fits &= !isMade || rows == 0 || Rows.carries(op, value, rows);
        fits &=
            !op.def().has(OpTrait.ELEMENTWISE)
                || !value.isTensor()
                || value.tensor().broadcastsTo(op.result().tensor());
      }
      if (!fits) {
        return cannot(step, ops, i);
      }
      op.results().forEach(result -> made.add(result.id()));
    }
    return true;
  }

  private boolean isMadeIn(ImmutableIntArray ops, Value value) {
    return value.isTensor() && ops.contains(facts.definedBy(facts.storageOf(value.id())));
  }

  private boolean cannot(int step, ImmutableIntArray ops, int index) {
    int other =
        ops.length() == 1
            ? facts.plan.collectives().get(facts.plan.epilogueOf(step)).op()
            : ops.get(index == 0 ? 1 : 0);
    wrong(
        Rule.STRUCTURE,
        step,
        "%s cannot be fused with %s"
            .formatted(facts.words.text(ops.get(index)), facts.words.text(other)));
    return false;
  }

  private static boolean isPure(Op op) {
    return (op.def().has(OpTrait.ELEMENTWISE) && op.results().size() == 1
            || op.def().has(OpTrait.ROWWISE))
        && !op.def().schema().mutates()
        && !op.results().isEmpty()
        && op.results().stream().allMatch(value -> value.isTensor() && value.tensor().numel() > 0);
  }

  private void checkAddresses(int step, ImmutableIntArray ops, int rows) {
    for (int writer = 0; writer < ops.length(); writer++) {
      for (int result : facts.fresh(ops.get(writer))) {
        for (int other = 0; other < ops.length(); other++) {
          for (int operand : facts.reads(ops.get(other))) {
            // The rest is a read of what the step itself wrote before.
            boolean own = facts.storageOf(operand) == facts.storageOf(result);
            if (!own
                && facts.overlap(operand, result)
                && !(other <= writer
                    && Rows.carries(facts.op(ops.get(other)), facts.value(operand), rows)
                    && facts.sameElements(operand, result))) {
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
                facts.words.text(writer),
                facts.value(result).name(),
                facts.words.address(result),
                role,
                facts.value(other).name(),
                facts.words.address(other)));
  }

  private void wrong(Rule rule, int step, String message) {
    findings.add(rule, facts.rank(), step, message, ImmutableList.of(facts.words.stepText(step)));
  }
}
