package dev.symplan.planner.interpret;

import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.planner.plan.Plan;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/** Compares what a plan does with what its program does. */
public final class Interpreter {
  private final List<ProcessGroup> groups;
  private final List<Graph> program;

  /** The graphs of a plan and of those made of it are mostly the same, and run alike. */
  private final List<Ran> ran = new ArrayList<>();

  private record Ran(List<ProcessGroup> groups, List<Graph> graphs, long seed, GraphRun run) {

    boolean is(List<ProcessGroup> otherGroups, List<Graph> others, long otherSeed) {
      return seed == otherSeed
          && groups.equals(otherGroups)
          && IntStream.range(0, graphs.size()).allMatch(i -> graphs.get(i) == others.get(i));
    }
  }

  /**
   * @param program the graph of each rank
   */
  public Interpreter(List<ProcessGroup> groups, List<Graph> program) {
    this.groups = groups;
    this.program = program;
  }

  /**
   * {@return the proof that the plan is wrong, if there is one}
   *
   * @param seed of what unknown ops do
   * @param orders how many orders of streams and ranks are tried
   */
  public Optional<String> wrong(Plan plan, long seed, int orders) {
    try {
      var planned = new ArrayList<Graph>();
      for (int rank = 0; rank < plan.worldSize(); rank++) {
        planned.add(plan.forRank(rank).graph());
      }
      var reference = run(plan.groups(), planned, seed);
      compare(planned, reference, run(groups, program, seed));
      for (int order = 0; order < orders; order++) {
        new PlanRun(plan, reference, seed, Piece.mix(seed, order)).run();
      }
      return Optional.empty();
    } catch (Unsafe | OpTypeException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  private GraphRun run(List<ProcessGroup> of, List<Graph> graphs, long seed) {
    for (var before : ran) {
      if (before.is(of, graphs, seed)) {
        return before.run;
      }
    }
    var run = new GraphRun(of, graphs, seed);
    ran.removeIf(before -> before.seed != seed);
    ran.add(new Ran(of, graphs, seed, run));
    return run;
  }

  /** The planned graph must leave what the program leaves. */
  private void compare(List<Graph> planned, GraphRun own, GraphRun other) {
    for (int rank = 0; rank < planned.size(); rank++) {
      var ours = tensors(planned.get(rank).outputValues());
      var theirs = tensors(program.get(rank).outputValues());
      for (int i = 0; i < theirs.size(); i++) {
        compare(own.rank(rank), ours.get(i), other.rank(rank), theirs.get(i));
      }
      for (int i = 0; i < planned.get(rank).inputs().size(); i++) {
        var input = planned.get(rank).inputs().get(i);
        var given = program.get(rank).inputs().get(i);
        if (GraphRun.kept(planned.get(rank)).contains(input)
            && !other.rank(rank).scratch.contains(other.rank(rank).place(given).space)) {
          compare(own.rank(rank), input, other.rank(rank), given);
        }
      }
    }
  }

  private static List<Value> tensors(List<Value> values) {
    return values.stream().filter(Value::isTensor).toList();
  }

  private static void compare(Rank own, Value value, Rank other, Value expected) {
    Unsafe.require(
        own.content(value) == other.content(expected),
        "rank %s: the planned graph gives another %s than the program",
        own.number,
        expected.name());
  }
}
