package dev.symplan.planner.interpret;

import dev.symplan.ir.aten.FsdpOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pass.Pass;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.PassObserver;
import dev.symplan.planner.pass.PlanState;
import dev.symplan.planner.pass.analysis.GraphChoice;
import dev.symplan.planner.pass.rewrite.NormalizeGraphs;
import dev.symplan.planner.plan.Plan;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A plan, and what its program is compared as.
 *
 * @param graphs the graph of each rank. Where ops stand for several others, as the fused ones of
 *     {@code symm_mem} do, it is what the compiler first makes of them; runs with numbers compare
 *     these with what the ops are defined to do
 */
record Compiled(Plan plan, List<Graph> graphs, Interpreter interpreter) {
  Compiled(Plan plan, List<Graph> graphs) {
    this(plan, graphs, new Interpreter(plan.groups(), graphs));
  }

  static Compiled of(Program program, Target target, CompileOptions options) {
    var normalized = new ArrayList<Optional<Graph>>();
    var observer =
        new PassObserver() {
          @Override
          public void after(Pass pass, PlanState state, PassContext context) {
            if (pass instanceof NormalizeGraphs) {
              normalized.addAll(byRank(state));
            }
          }
        };
    var plan = Compiler.forTarget(target).with(options).observedBy(observer).compile(program);
    var given = GraphChoice.of(program, options);
    boolean apart =
        given.stream().flatMap(graph -> graph.ops().stream()).anyMatch(Compiled::isTakenApart);
    return new Compiled(
        plan, apart ? normalized.stream().map(Optional::orElseThrow).toList() : given);
  }

  private static List<Optional<Graph>> byRank(PlanState state) {
    var graphs = new ArrayList<Optional<Graph>>();
    for (var own : state.graphs().stream().flatMap(stage -> stage.classes().stream()).toList()) {
      own.ranks()
          .forEach(
              rank -> {
                while (graphs.size() <= rank) {
                  graphs.add(Optional.empty());
                }
                graphs.set(rank, Optional.of(own.graph()));
              });
    }
    return graphs;
  }

  private static boolean isTakenApart(Op op) {
    return FsdpOps.copies(op.def().schema())
        || (op.def().name().namespace().equals("symm_mem") && !ForeignCollectives.is(op));
  }

  Optional<String> wrong(long seed, int orders) {
    return interpreter.wrong(plan, seed, orders);
  }

  Optional<String> wrong(Plan changed, long seed, int orders) {
    return interpreter.wrong(changed, seed, orders);
  }
}
