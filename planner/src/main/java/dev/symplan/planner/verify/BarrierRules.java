package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.CollectivePlan;
import dev.symplan.planner.Step;
import dev.symplan.planner.Variant;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * {@link Rule#RACE} with peers. Between the two barriers of a collective, peers touch this rank's
 * operand or result, and {@link MemoryRun} sees to it that this rank does not. A collective without
 * a barrier of its own relies on one of another collective of its group: from that one's end
 * barrier on, peers may already be at it; until that one's start barrier, they may still be.
 *
 * <p>Every rank has the same collectives in the same order, so what one rank may rely on all may.
 */
final class BarrierRules {
  /**
   * How many steps between barriers are looked at; who leaves out more than that proves nothing.
   */
  private static final long BUDGET = 1_000_000;

  private final RankFacts facts;
  private final Findings findings;
  private final ImmutableList<CollectivePlan> collectives;
  private final int[] start;
  private final int[] finish;
  private long budget;

  private BarrierRules(RankFacts facts, Findings findings) {
    this.facts = facts;
    this.findings = findings;
    this.collectives = facts.plan.collectives();
    this.start = new int[collectives.size()];
    this.finish = new int[start.length];
    this.budget = BUDGET + 20L * facts.plan.steps().size();
  }

  static void check(RankFacts facts, Findings findings) {
    var rules = new BarrierRules(facts, findings);
    for (int k = 0; k < rules.start.length; k++) {
      if (rules.lacks(k, true) || rules.lacks(k, false)) {
        rules.check();
        return;
      }
    }
  }

  /** Whether peers touch this rank's memory without a barrier before, or after. */
  private boolean lacks(int k, boolean before) {
    var collective = collectives.get(k);
    boolean remote = !remote(k, false).isEmpty() || !remote(k, true).isEmpty();
    return remote && !(before ? collective.startBarrier() : collective.endBarrier());
  }

  /**
   * {@return the operands that peers read, or the results that they write, in this rank's memory}
   */
  private List<Integer> remote(int k, boolean results) {
    var collective = collectives.get(k);
    if (collective.variant() == Variant.LOCAL
        || !CollectiveRules.needsSymmetric(collective, results)) {
      return ImmutableList.of();
    }
    return results ? collective.results() : collective.operands();
  }

  private void check() {
    var steps = facts.plan.steps();
    for (int s = 0; s < steps.size(); s++) {
      switch (steps.get(s)) {
        case Step.Compute _, Step.Fused _ -> {}
        case Step.Start(int k) -> {
          start[k] = s;
          finish[k] = s;
        }
        case Step.Join(int k) -> finish[k] = s;
      }
    }
    Map<String, Integer> barriers = new HashMap<>();
    for (int k = 0; k < start.length; k++) {
      if (lacks(k, true)) {
        checkBefore(k, barriers.get(collectives.get(k).group()));
      }
      if (meets(k, collectives.get(k).endBarrier())) {
        barriers.put(collectives.get(k).group(), k);
      }
    }
    barriers.clear();
    for (int k = start.length - 1; k >= 0; k--) {
      if (lacks(k, false)) {
        checkAfter(k, barriers.get(collectives.get(k).group()));
      }
      if (meets(k, collectives.get(k).startBarrier())) {
        barriers.put(collectives.get(k).group(), k);
      }
    }
  }

  private boolean meets(int k, boolean barrier) {
    return barrier && collectives.get(k).variant() != Variant.LOCAL;
  }

  private void checkBefore(int k, @Nullable Integer witness) {
    var text = "%s begins without a barrier".formatted(facts.text(collectives.get(k).op()));
    if (witness == null
        || finish[witness] > start[k]
        || collectives.get(k).variant() == Variant.CUSTOM) {
      race(start[k], text + ", and no other one keeps peers from its memory until then", start[k]);
      return;
    }
    // On a side stream, the end barrier may be passed at any time after the start.
    checkWindow(k, start[witness], start[k], text + ", so peers may be at %s from %s on", witness);
  }

  private void checkAfter(int k, @Nullable Integer witness) {
    var text = "%s ends without a barrier".formatted(facts.text(collectives.get(k).op()));
    if (witness == null
        || start[witness] < finish[k]
        || collectives.get(k).variant() == Variant.CUSTOM) {
      race(finish[k], text + ", and no other one says when peers are done", finish[k]);
      return;
    }
    checkWindow(k, finish[k], finish[witness], text + ", so peers may be at %s until %s", witness);
  }

  /** Reports the steps between two that use what peers may be reading or writing. */
  private void checkWindow(int k, int from, int to, String text, int witness) {
    budget -= to - from;
    if (budget < 0) {
      race(start[k], "too much lies between barriers to look at", start[k]);
      return;
    }
    for (int s = from + 1; s < to; s++) {
      switch (facts.plan.steps().get(s)) {
        case Step.Compute(int op) -> checkUse(k, op, from, s, to, text, witness);
        case Step.Fused(var ops) -> {
          int step = s;
          ops.forEach(op -> checkUse(k, op, from, step, to, text, witness));
        }
        case Step.Start(int other) ->
            checkUse(k, collectives.get(other).op(), from, s, to, text, witness);
        case Step.Join(int other) ->
            checkUse(k, collectives.get(other).op(), from, s, to, text, witness);
      }
    }
  }

  private void checkUse(int k, int op, int from, int step, int to, String text, int witness) {
    if (op == collectives.get(witness).op()) {
      return;
    }
    int touched = touched(k, op);
    if (touched >= 0) {
      race(
          step,
          text.formatted(facts.value(touched).name(), facts.stepText(start[witness]))
              + ", but %s uses its memory at %s"
                  .formatted(facts.stepText(step), facts.place(touched)),
          from,
          step,
          to);
    }
  }

  /**
   * {@return the tensor of a collective that an op uses as long as peers may not allow it, or -1}
   */
  private int touched(int k, int op) {
    for (int operand : remote(k, false)) {
      if (meets(operand, facts.fresh(op)) || meets(operand, facts.mutated(op))) {
        return operand;
      }
    }
    for (int result : remote(k, true)) {
      if (meets(result, facts.fresh(op)) || meets(result, facts.reads(op))) {
        return result;
      }
    }
    return -1;
  }

  private boolean meets(int value, int[] others) {
    return Arrays.stream(others).anyMatch(other -> facts.overlap(value, other));
  }

  private void race(int step, String message, int... trace) {
    findings.add(
        Rule.RACE,
        facts.rank(),
        step,
        message,
        Arrays.stream(trace).mapToObj(facts::stepText).toList());
  }
}
