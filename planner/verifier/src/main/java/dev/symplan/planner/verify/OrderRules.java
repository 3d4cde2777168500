package dev.symplan.planner.verify;

import dev.symplan.planner.plan.Step;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * {@link Rule#ORDER}: every op runs once, after its operands; every side-stream start is joined.
 * Ops that may do anything keep the graph's order among themselves and with collectives, of which
 * none is unfinished then.
 */
final class OrderRules {
  private final AliasModel facts;
  private final Findings findings;
  private final int[] stepOfOp;
  private final int[] start;
  private final int[] join;
  private int nextStart;

  /**
   * The last op in graph order, of those that ran, that may do anything; and of collectives too.
   */
  private int lastUnbounded = -1;

  private int lastMeeting = -1;

  /** The side-stream collectives that have not been joined. */
  private final Set<Integer> unfinished = new LinkedHashSet<>();

  private OrderRules(AliasModel facts, Findings findings) {
    this.facts = facts;
    this.findings = findings;
    this.stepOfOp = new int[facts.plan.graph().ops().size()];
    this.start = new int[facts.plan.collectives().size()];
    this.join = new int[start.length];
    Arrays.fill(stepOfOp, -1);
    Arrays.fill(start, -1);
    Arrays.fill(join, -1);
  }

  static void check(AliasModel facts, Findings findings) {
    new OrderRules(facts, findings).check();
  }

  private void wrong(int step, String message, int... others) {
    findings.add(
        Rule.ORDER,
        facts.rank(),
        step,
        message,
        Arrays.stream(others).mapToObj(facts.words::stepText).toList());
  }

  private void check() {
    var steps = facts.plan.steps();
    for (int s = 0; s < steps.size(); s++) {
      switch (steps.get(s)) {
        case Step.Compute(int op) -> compute(s, op);
        case Step.Fused(var ops) -> {
          int step = s;
          ops.forEach(op -> compute(step, op));
        }
        case Step.Start(int k) -> start(s, k);
        case Step.Join(int k) -> join(s, k);
      }
    }
    for (int op = 0; op < stepOfOp.length; op++) {
      if (facts.needsStep(op) && stepOfOp[op] < 0) {
        wrong(-1, "no step runs %s".formatted(facts.words.text(op)));
      }
    }
    for (int k = 0; k < start.length; k++) {
      if (start[k] >= 0 && join[k] < 0 && facts.plan.collectives().get(k).isAsync()) {
        wrong(start[k], "nothing joins %s".formatted(facts.words.stepText(start[k])), start[k]);
      }
    }
    facts.plan.graph().outputValues().forEach(value -> checkReady(value.id(), steps.size()));
  }

  private void compute(int step, int op) {
    if (facts.collectiveOf(op) >= 0) {
      wrong(
          step,
          "%s is a collective, but is not started as one".formatted(facts.words.stepText(step)));
    } else if (!facts.mayHaveStep(op)) {
      wrong(step, "%s does nothing at run time".formatted(facts.words.stepText(step)));
    }
    run(step, op);
  }

  private void start(int step, int k) {
    int op = facts.plan.collectives().get(k).op();
    if (start[k] >= 0) {
      wrong(step, "%s is the second start".formatted(facts.words.stepText(step)), start[k], step);
      return;
    }
    if (k != nextStart) {
      wrong(
          step,
          "%s starts collective %s, but in the order common to all ranks, collective %s comes next"
              .formatted(facts.words.stepText(step), k, nextStart));
    }
    nextStart = k + 1;
    start[k] = step;
    if (facts.plan.collectives().get(k).isAsync()) {
      unfinished.add(k);
    }
    run(step, op);
  }

  private void join(int step, int k) {
    if (!facts.plan.collectives().get(k).isAsync()) {
      wrong(
          step,
          "%s joins a collective that runs on the compute stream"
              .formatted(facts.words.stepText(step)));
    } else if (start[k] < 0) {
      wrong(step, "%s comes before its start".formatted(facts.words.stepText(step)));
    } else if (join[k] >= 0) {
      wrong(step, "%s is the second join".formatted(facts.words.stepText(step)), join[k], step);
    } else {
      join[k] = step;
      unfinished.remove(k);
    }
  }

  private void run(int step, int op) {
    if (stepOfOp[op] >= 0) {
      wrong(
          step,
          "%s repeats %s".formatted(facts.words.stepText(step), facts.words.stepText(stepOfOp[op])),
          stepOfOp[op],
          step);
      return;
    }
    stepOfOp[op] = step;
    checkUnbounded(step, op);
    facts.op(op).operands().forEach(value -> checkReady(value.id(), step));
  }

  private void checkUnbounded(int step, int op) {
    boolean unbounded = facts.mayDoAnything(op);
    if (!unbounded && facts.collectiveOf(op) < 0) {
      return;
    }
    if (op < (unbounded ? lastMeeting : lastUnbounded)) {
      wrong(
          step,
          "%s comes after %s, but before it in the graph, and one of the two may do anything"
              .formatted(
                  facts.words.stepText(step),
                  facts.words.text(unbounded ? lastMeeting : lastUnbounded)));
    }
    lastMeeting = Math.max(lastMeeting, op);
    if (!unbounded) {
      return;
    }
    lastUnbounded = Math.max(lastUnbounded, op);
    for (int k : unfinished) {
      if (facts.plan.collectives().get(k).op() != op) {
        wrong(
            step,
            "%s may do anything, but runs at the same time as %s"
                .formatted(facts.words.stepText(step), facts.words.stepText(start[k])),
            start[k],
            step);
      }
    }
  }

  private void checkReady(int value, int step) {
    // A view is there when its storage is; what has no step was known before.
    int storage = facts.storageOf(value);
    int op = storage >= 0 ? facts.definedBy(storage) : facts.opOf(value);
    if (op < 0 || !facts.needsStep(op)) {
      return;
    }
    int k = facts.collectiveOf(op);
    boolean running =
        stepOfOp[op] >= 0 && k >= 0 && facts.plan.collectives().get(k).isAsync() && join[k] < 0;
    if (stepOfOp[op] >= 0 && !running) {
      return;
    }
    var name = facts.value(value).name();
    var reader = facts.words.stepText(step);
    if (!running) {
      wrong(
          Math.min(step, facts.plan.steps().size() - 1),
          "%s reads %s before %s has run".formatted(reader, name, facts.words.text(op)));
    } else {
      findings.add(
          Rule.ORDER,
          facts.rank(),
          Math.min(step, facts.plan.steps().size() - 1),
          "%s reads %s, but %s may not have finished: no step joins it before"
              .formatted(reader, name, facts.words.stepText(start[k])),
          List.of(facts.words.stepText(start[k]), reader));
    }
  }
}
