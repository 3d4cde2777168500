package dev.symplan.planner.pass.place;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.machine.Variant.Barriers;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.select.AttachEpilogues;
import dev.symplan.planner.pass.select.RealizeOperands;
import dev.symplan.planner.pass.select.SelectVariants;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.RankPlan;

/** Puts together the plan of each rank class, with all barriers. */
final class RankPlans {
  private final GraphState state;
  private final ImmutableList<Boolean> inPlace;
  private final Workspaces workspaces;

  private RankPlans(GraphState state) {
    this.state = state;
    this.inPlace = state.get(MergeStorages.IN_PLACE);
    this.workspaces = state.get(ReserveWorkspaces.WORKSPACES);
  }

  static ImmutableList<RankPlan> of(GraphState state, ImmutableList<Allocate.Memory> memories) {
    var assembly = new RankPlans(state);
    var plans = ImmutableList.<RankPlan>builder();
    for (int c = 0; c < memories.size(); c++) {
      plans.add(assembly.plan(c, memories.get(c)));
    }
    return plans.build();
  }

  private RankPlan plan(int rankClass, Allocate.Memory memory) {
    var graph = state.get(RealizeOperands.REALIZED).get(rankClass).graph().numbered();
    return new RankPlan(
        graph,
        memory.placements(),
        memory.buffers(),
        state.get(ScheduleSteps.SCHEDULES).get(rankClass).steps(),
        collectives(rankClass, graph, memory.buffers().size() - workspaces.count()),
        memory.local());
  }

  private ImmutableList<CollectivePlan> collectives(
      int rankClass, Graph numbered, int firstWorkspace) {
    var graph = state.get(RealizeOperands.REALIZED).get(rankClass);
    var streams = state.get(ScheduleSteps.SCHEDULES).get(rankClass).streams();
    var collectives = Collective.allOf(numbered.ops());
    var plans = ImmutableList.<CollectivePlan>builder();
    for (int k = 0; k < collectives.size(); k++) {
      var collective = collectives.get(k);
      var variant = graph.variants().get(k);
      Barrier barrier =
          variant.barriers() == Barriers.NONE ? new Barrier.None() : new Barrier.Own();
      int workspace = workspaces.ofCollective().get(k);
      plans.add(
          new CollectivePlan(
              collective.index(),
              collective.kind(),
              collective.group(),
              collective.reduceOp(),
              collective.root(),
              ids(collective.operands()),
              ids(collective.results()),
              variant,
              streams.get(k),
              barrier,
              barrier,
              inPlace.get(k),
              workspace < 0 ? workspace : firstWorkspace + workspace,
              state.get(SelectVariants.SELECTIONS).get(k).verdicts(),
              inPlace.get(k)
                  ? resultsInPlace(collective, graph.args().get(k))
                  : graph.args().get(k),
              state.get(AttachEpilogues.EPILOGUES).get(k)));
    }
    return plans.build();
  }

  /** Results that the collective writes by itself are now known to take the operands' memory. */
  private static ImmutableList<ArgDecision> resultsInPlace(
      Collective collective, ImmutableList<ArgDecision> args) {
    int operands = collective.operands().size();
    var inPlace = ImmutableList.<ArgDecision>builder();
    for (int i = 0; i < args.size(); i++) {
      var arg = args.get(i);
      inPlace.add(
          arg.reason() == ArgDecision.Reason.RESULT_WRITES
              ? new ArgDecision(
                  arg.result(),
                  arg.value(),
                  arg.realization(),
                  ArgDecision.Reason.IN_PLACE,
                  args.get(i - operands).value(),
                  arg.bytes())
              : arg);
    }
    return inPlace.build();
  }

  private static ImmutableList<Integer> ids(ImmutableList<Value> values) {
    return values.stream().map(Value::id).collect(toImmutableList());
  }
}
