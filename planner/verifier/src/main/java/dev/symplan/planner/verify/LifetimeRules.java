package dev.symplan.planner.verify;

import dev.symplan.planner.plan.Step;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.Arrays;

/**
 * {@link Rule#LIFETIME}: each buffer lives from the first step that touches it to the last that may
 * do so.
 */
final class LifetimeRules {
  private final AliasModel facts;
  private final int[] first;
  private final int[] last;
  private final int[] namedBy;

  private LifetimeRules(AliasModel facts) {
    this.facts = facts;
    int count = facts.plan.buffers().size();
    this.first = new int[count];
    this.last = new int[count];
    this.namedBy = new int[count];
    Arrays.fill(first, Integer.MAX_VALUE);
    Arrays.fill(last, Integer.MIN_VALUE);
    Arrays.fill(namedBy, -1);
  }

  static void check(AliasModel facts, Findings findings) {
    var rules = new LifetimeRules(facts);
    rules.collect();
    rules.compare(findings);
  }

  private void collect() {
    var steps = facts.plan.steps();
    int end = steps.size();
    for (var input : facts.plan.graph().inputs()) {
      if (input.isTensor()) {
        touch(input.id(), -1, AliasModel.isDonated(input) ? -1 : end);
      }
    }
    for (int s = 0; s < end; s++) {
      switch (steps.get(s)) {
        case Step.Compute(int op) -> touchAll(op, s);
        case Step.Fused(var ops) -> {
          int step = s;
          ops.forEach(op -> touchAll(op, step));
        }
        case Step.Start(int k) -> {
          var collective = facts.plan.collectives().get(k);
          touchAll(collective.op(), s);
          if (collective.hasEpilogue()) {
            // Peers may read operands until that has run.
            int after = s + 1;
            collective.operands().forEach(value -> touch(value, after, after));
          }
        }
        case Step.Join(int k) -> touchAll(facts.plan.collectives().get(k).op(), s);
      }
    }
    for (var value : facts.plan.graph().outputValues()) {
      if (value.isTensor()) {
        touch(value.id(), end, end);
      }
    }
    SetupRules.kept(facts).stream()
        .map(storage -> facts.storage(storage).id())
        .filter(value -> facts.plan.placements().get(value).exists())
        .forEach(value -> touch(value, end, end));
    var lastUses = LastUses.of(facts);
    for (int storage = 0; storage < lastUses.length; storage++) {
      int id = facts.storage(storage).id();
      if (facts.mayAlias().isShared(storage) && facts.plan.placements().get(id).exists()) {
        int buffer = facts.plan.placements().get(id).buffer();
        last[buffer] = Math.max(last[buffer], lastUses[storage]);
      }
    }
  }

  private void touchAll(int op, int step) {
    for (int value : facts.reads(op)) {
      touch(value, step, step);
    }
    for (int value : facts.fresh(op)) {
      touch(value, step, step);
    }
  }

  private void touch(int value, int from, int to) {
    int buffer = facts.plan.placements().get(value).buffer();
    if (from < first[buffer]) {
      first[buffer] = from;
      namedBy[buffer] = facts.storageOf(value);
    }
    last[buffer] = Math.max(last[buffer], to);
  }

  private void compare(Findings findings) {
    for (int i = 0; i < first.length; i++) {
      var buffer = facts.plan.buffers().get(i);
      if (last[i] == Integer.MIN_VALUE) {
        continue;
      }
      if (buffer.first() != first[i] || buffer.last() != last[i]) {
        findings.add(
            Rule.LIFETIME,
            facts.rank(),
            "the plan says that the buffer %s lives from step %s to %s, but it is used from %s to %s"
                .formatted(
                    buffer.name(), buffer.first(), buffer.last(), text(first[i]), text(last[i])));
      }
      var name = facts.storage(namedBy[i]).name();
      if (!buffer.name().equals(name)) {
        findings.add(
            Rule.LIFETIME,
            facts.rank(),
            "the buffer %s is first written as %s".formatted(buffer.name(), name));
      }
    }
  }

  private String text(int step) {
    if (step < 0) {
      return "before the first step (-1)";
    }
    return step == facts.plan.steps().size()
        ? "after the last step (%s)".formatted(step)
        : facts.words.stepText(step);
  }
}
