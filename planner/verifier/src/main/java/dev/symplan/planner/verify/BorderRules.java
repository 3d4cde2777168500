package dev.symplan.planner.verify;

import dev.symplan.ir.Arg;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;

/**
 * {@link Rule#BORDER}: where a plan is of several graphs, each can run by itself. Its ops run
 * between its borders, its collectives begin and end there with barriers of its own, it takes no
 * input of a later graph, and it has made what it gives when it ends.
 *
 * <p>What one graph hands to a later one stays as it is in between by {@link MemoryRun}, which
 * carries out the steps of all graphs.
 */
final class BorderRules {
  private final AliasModel facts;
  private final Findings findings;

  /** The ops that are borders, in the graph's order. */
  private final List<Integer> borders = new ArrayList<>();

  /** By op, the number of borders up to it. */
  private final int[] graphOf;

  private BorderRules(AliasModel facts, Findings findings) {
    this.facts = facts;
    this.findings = findings;
    var ops = facts.plan.graph().ops();
    this.graphOf = new int[ops.size()];
    for (int op = 0; op < ops.size(); op++) {
      if (isBorder(ops.get(op))) {
        borders.add(op);
      }
      graphOf[op] = borders.size();
    }
  }

  static void check(AliasModel facts, Findings findings) {
    var rules = new BorderRules(facts, findings);
    if (!rules.borders.isEmpty()) {
      rules.checkSignature();
      rules.checkSteps();
      rules.checkBarriers();
    }
  }

  private static boolean isBorder(Op op) {
    return op.def().has(OpTrait.BORDER) && !op.def().has(OpTrait.SETUP_END);
  }

  private void wrong(int step, String message) {
    findings.add(Rule.BORDER, facts.rank(), step, message, List.of());
  }

  private void checkSignature() {
    var graph = facts.plan.graph();
    var names = new HashSet<String>();
    names.add(graph.name());
    var inputs = new ArrayList<Long>();
    var outputs = new ArrayList<Long>();
    for (int border : borders) {
      var op = facts.op(border);
      var name = name(op);
      if (name.isEmpty() || !names.add(name)) {
        wrong(-1, "two graphs of the program are called '%s'".formatted(name));
      }
      inputs.add(number(op, "inputs"));
      outputs.add(number(op, "outputs"));
    }
    inputs.add((long) graph.inputs().size());
    outputs.add((long) graph.outputs().size());
    if (!isAscending(inputs) || !isAscending(outputs)) {
      wrong(-1, "the borders count more inputs or outputs than there are, or not in order");
      return;
    }
    var madeIn = new int[graph.valueCount()];
    for (int i = 0; i < graph.inputs().size(); i++) {
      madeIn[graph.inputs().get(i).id()] = holder(inputs, i);
    }
    for (int i = 0; i < graph.ops().size(); i++) {
      var op = graph.ops().get(i);
      for (var value : op.operands()) {
        // The caller fills what the setup reads before anything runs.
        if (i > facts.setupEnd && madeIn[value.id()] > graphOf[i]) {
          wrong(
              -1,
              "%s takes %s, which is an input of a later graph"
                  .formatted(facts.words.text(i), value.name()));
        }
      }
      for (var result : op.results()) {
        madeIn[result.id()] = graphOf[i];
      }
    }
    for (int i = 0; i < graph.outputs().size(); i++) {
      for (var value : graph.outputs().get(i).operands()) {
        if (madeIn[value.id()] > holder(outputs, i)) {
          wrong(
              -1,
              "output %s of an earlier graph is %s, which a later one makes"
                  .formatted(i, value.name()));
        }
      }
    }
  }

  private static boolean isAscending(List<Long> counts) {
    long last = 0;
    for (long count : counts) {
      if (count < last) {
        return false;
      }
      last = count;
    }
    return counts.stream().noneMatch(count -> count > counts.getLast());
  }

  /** {@return the graph whose range an index is in} */
  private static int holder(List<Long> ends, int index) {
    int graph = 0;
    while (ends.get(graph) <= index) {
      graph++;
    }
    return graph;
  }

  private static String name(Op border) {
    return border.arg("graph") instanceof Arg.Str(String name) ? name : "";
  }

  private static long number(Op border, String param) {
    return border.arg(param) instanceof Arg.Int(long number) ? number : -1;
  }

  private void checkSteps() {
    int running = 0;
    var steps = facts.plan.steps();
    for (int s = 0; s < steps.size(); s++) {
      int step = s;
      int now = running;
      switch (steps.get(s)) {
        case Step.Compute(int op) when isBorder(facts.op(op)) -> {
          running++;
          require(step, op, running);
        }
        case Step.Compute(int op) -> require(step, op, now);
        case Step.Fused(var ops) -> ops.forEach(op -> require(step, op, now));
        case Step.Start(int k) -> require(step, facts.plan.collectives().get(k).op(), now);
        case Step.Join(int k) -> require(step, facts.plan.collectives().get(k).op(), now);
      }
    }
  }

  private void require(int step, int op, int graph) {
    if (graphOf[op] != graph) {
      wrong(
          step,
          "%s is of graph %s of the program, but runs in graph %s"
              .formatted(facts.words.stepText(step), graphOf[op], graph));
    }
  }

  private void checkBarriers() {
    var collectives = facts.plan.collectives();
    for (var collective : collectives) {
      for (var barrier : List.of(collective.start(), collective.end())) {
        if (barrier instanceof Barrier.StandIn(int witness, var _)
            && witness >= 0
            && witness < collectives.size()
            && graphOf[collectives.get(witness).op()] != graphOf[collective.op()]) {
          wrong(
              -1,
              "a barrier of %s is one of another graph, which does not run with it"
                  .formatted(facts.words.text(collective.op())));
        }
      }
    }
  }
}
