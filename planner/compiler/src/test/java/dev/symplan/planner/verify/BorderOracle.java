package dev.symplan.planner.verify;

import static dev.symplan.planner.verify.PlannedRun.require;

import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;

/** Whether the graphs of a plan could be run one by one: takes each apart, and looks at it. */
final class BorderOracle {
  private BorderOracle() {}

  static void check(Plan plan) {
    var first = terms(plan.rankPlans().getFirst());
    for (var rank : plan.rankPlans()) {
      checkSetup(rank);
      require(terms(rank).equals(first), "ranks begin other graphs, or elsewhere");
      if (first.isEmpty()) {
        continue;
      }
      var opsOf = opsOf(rank);
      checkOps(rank, opsOf);
      checkBarriers(rank, opsOf);
      checkSignature(rank, opsOf);
    }
  }

  static boolean isBorder(Op op) {
    return op.def().has(OpTrait.BORDER) && !op.def().has(OpTrait.SETUP_END);
  }

  private static List<Op> borders(RankPlan rank) {
    return rank.graph().ops().stream().filter(BorderOracle::isBorder).toList();
  }

  /** {@return the ops that run once: what is before the end of the setup} */
  static List<Op> setup(RankPlan rank) {
    var ops = rank.graph().ops();
    int end = 0;
    for (int op = 0; op < ops.size(); op++) {
      end = ops.get(op).def().has(OpTrait.SETUP_END) ? op : end;
    }
    return ops.subList(0, end);
  }

  private static void checkSetup(RankPlan rank) {
    var setup = setup(rank);
    var made = new HashSet<Value>();
    for (var op : setup) {
      require(
          op.def().rule().isPresent()
              && op.def().collective().isEmpty()
              && !op.def().hasEffect()
              && made.containsAll(op.operands()),
          "what runs once may differ from run to run");
      made.addAll(op.results());
    }
    boolean ended = setup.isEmpty();
    for (var step : rank.steps()) {
      for (int op : ops(rank, step)) {
        ended |= rank.graph().ops().get(op).def().has(OpTrait.SETUP_END);
        require(op < setup.size() != ended, "an op runs on the other side of the end of the setup");
      }
    }
  }

  private static List<Integer> ops(RankPlan rank, Step step) {
    return switch (step) {
      case Step.Compute(int op) -> List.of(op);
      case Step.Fused(var all) -> all.asList();
      case Step.Start(int k) -> List.of(rank.collectives().get(k).op());
      case Step.Join(int k) -> List.of(rank.collectives().get(k).op());
    };
  }

  private static List<String> terms(RankPlan rank) {
    var terms = new ArrayList<String>();
    int meetings = 0;
    for (var op : rank.graph().ops()) {
      meetings += op.def().collective().isPresent() ? 1 : 0;
      if (isBorder(op)) {
        terms.add(op.args() + " " + meetings);
      }
    }
    return terms;
  }

  /** {@return by graph, its ops} */
  private static List<Set<Integer>> opsOf(RankPlan rank) {
    var graphs = new ArrayList<Set<Integer>>();
    graphs.add(new HashSet<>());
    for (int op = 0; op < rank.graph().ops().size(); op++) {
      if (isBorder(rank.graph().ops().get(op))) {
        graphs.add(new HashSet<>());
      } else {
        graphs.getLast().add(op);
      }
    }
    return graphs;
  }

  private static void checkOps(RankPlan rank, List<Set<Integer>> opsOf) {
    var borders = borders(rank);
    int graph = 0;
    for (var step : rank.steps()) {
      for (int op : ops(rank, step)) {
        if (isBorder(rank.graph().ops().get(op))) {
          require(
              graph < borders.size() && borders.get(graph).equals(rank.graph().ops().get(op)),
              "graphs begin in another order");
          graph++;
        } else {
          require(opsOf.get(graph).contains(op), "an op runs in another graph than its own");
        }
      }
    }
    require(graph == borders.size(), "a graph does not begin");
  }

  private static void checkBarriers(RankPlan rank, List<Set<Integer>> opsOf) {
    for (var collective : rank.collectives()) {
      for (var barrier : List.of(collective.start(), collective.end())) {
        if (barrier instanceof Barrier.StandIn(int other, var _)
            && other >= 0
            && other < rank.collectives().size()) {
          int witness = rank.collectives().get(other).op();
          require(
              opsOf.stream()
                  .anyMatch(ops -> ops.contains(collective.op()) && ops.contains(witness)),
              "a barrier of a graph that does not run with it");
        }
      }
    }
  }

  private static void checkSignature(RankPlan rank, List<Set<Integer>> opsOf) {
    var graph = rank.graph();
    var inputs = counts(rank, "inputs", graph.inputs().size());
    var outputs = counts(rank, "outputs", graph.outputs().size());
    for (int g = 0; g < opsOf.size(); g++) {
      require(
          inputs.get(g) <= inputs.get(g + 1) && outputs.get(g) <= outputs.get(g + 1),
          "inputs or outputs that are not there");
      int index = g;
      var known = new HashSet<Value>(graph.inputs().subList(0, inputs.get(g + 1)));
      IntStream.range(0, graph.ops().size())
          .filter(op -> opsOf.subList(0, index + 1).stream().anyMatch(ops -> ops.contains(op)))
          .forEach(op -> known.addAll(graph.ops().get(op).results()));
      opsOf
          .get(g)
          .forEach(
              op ->
                  require(
                      known.containsAll(graph.ops().get(op).operands()),
                      "a graph takes what a later one brings"));
      graph
          .outputs()
          .subList(outputs.get(g), outputs.get(g + 1))
          .forEach(
              output ->
                  require(
                      known.containsAll(output.operands()),
                      "a graph gives what a later one makes"));
    }
  }

  private static List<Integer> counts(RankPlan rank, String param, int all) {
    var counts = new ArrayList<Integer>();
    counts.add(0);
    borders(rank).forEach(border -> counts.add((int) border.call().integer(param)));
    counts.add(all);
    require(
        counts.stream().allMatch(count -> 0 <= count && count <= all),
        "inputs or outputs that are not there");
    return counts;
  }
}
