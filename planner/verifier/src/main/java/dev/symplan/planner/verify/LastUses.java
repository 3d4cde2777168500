package dev.symplan.planner.verify;

import dev.symplan.planner.plan.Step;
import java.util.Arrays;

/** The ends of storages' lives, by the steps of a rank's plan. */
final class LastUses {
  private final AliasModel facts;
  private final int[] last;

  private LastUses(AliasModel facts) {
    this.facts = facts;
    this.last = new int[facts.storageCount()];
    Arrays.fill(last, -1);
  }

  /**
   * {@return by storage, the last step after which no tensor that may be in it is used; the number
   * of steps for what the caller or the next run keeps, -1 for what no step uses}
   */
  static int[] of(AliasModel facts) {
    return new LastUses(facts).find();
  }

  private int[] find() {
    var plan = facts.plan;
    int end = plan.steps().size();
    for (int s = 0; s < end; s++) {
      int step = s;
      switch (plan.steps().get(s)) {
        case Step.Compute(int op) -> raise(op, step);
        case Step.Fused(var ops) -> ops.forEach(op -> raise(op, step));
        case Step.Start(int k) -> {
          var collective = plan.collectives().get(k);
          raise(collective.op(), step);
          if (collective.hasEpilogue()) {
            // The kernel reads operands until that has run.
            raise(facts.reads(collective.op()), step + 1);
          }
        }
        case Step.Join(int k) -> raise(plan.collectives().get(k).op(), step);
      }
    }
    for (var input : plan.graph().inputs()) {
      if (input.isTensor() && !AliasModel.isDonated(input)) {
        last[facts.storageOf(input.id())] = end;
      }
    }
    for (var value : plan.graph().outputValues()) {
      if (value.isTensor()) {
        last[facts.storageOf(value.id())] = end;
      }
    }
    SetupRules.kept(facts).stream().forEach(storage -> last[storage] = end);
    facts.mayAlias().raise(last);
    return last;
  }

  private void raise(int op, int step) {
    raise(facts.reads(op), step);
    raise(facts.fresh(op), step);
  }

  private void raise(int[] values, int step) {
    for (int value : values) {
      int storage = facts.storageOf(value);
      last[storage] = Math.max(last[storage], step);
    }
  }
}
