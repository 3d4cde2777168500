package dev.symplan.planner.pass.place;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.machine.Variant.Barriers;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.select.AttachEpilogues;
import dev.symplan.planner.pass.select.RealizeOperands;
import dev.symplan.planner.pass.select.SelectVariants;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.ArgDecision.Reason;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.RankPlan;
import java.util.HashMap;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

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

  /** {@return the graph of each rank class, as plans have it} */
  static ImmutableList<Graph> numbered(GraphState state) {
    return state.get(RealizeOperands.REALIZED).stream()
        .map(realized -> realized.graph().numbered())
        .collect(toImmutableList());
  }

  static ImmutableList<RankPlan> of(
      GraphState state, ImmutableList<Graph> numbered, ImmutableList<Allocate.Memory> memories) {
    var assembly = new RankPlans(state);
    var plans = ImmutableList.<RankPlan>builder();
    for (int c = 0; c < memories.size(); c++) {
      plans.add(assembly.plan(c, numbered.get(c), memories.get(c)));
    }
    return plans.build();
  }

  private RankPlan plan(int rankClass, Graph graph, Allocate.Memory memory) {
    return new RankPlan(
        graph,
        memory.placements(),
        memory.buffers(),
        state.get(ScheduleSteps.SCHEDULES).get(rankClass).steps(),
        collectives(rankClass, graph, memory),
        memory.local());
  }

  private ImmutableList<CollectivePlan> collectives(
      int rankClass, Graph numbered, Allocate.Memory memory) {
    int firstWorkspace = memory.buffers().size() - workspaces.count();
    var joined = joinedBy(numbered, memory.placements());
    var graph = state.get(RealizeOperands.REALIZED).get(rankClass);
    var streams = state.get(ScheduleSteps.SCHEDULES).get(rankClass).streams();
    var collectives = Collective.allOf(numbered.ops());
    return Parallel.map(
        collectives.size(),
        k -> {
          var collective = collectives.get(k);
          var variant = graph.variants().get(k);
          Barrier barrier =
              variant.barriers() == Barriers.NONE ? new Barrier.None() : new Barrier.Own();
          int workspace = workspaces.ofCollective().get(k);
          return new CollectivePlan(
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
              args(collective, graph.args().get(k), inPlace.get(k), joined),
              state.get(AttachEpilogues.EPILOGUES).get(k));
        });
  }

  /** By tensor in rows, the name of what a later op joins it in: a piece, or another view of it. */
  private static ImmutableMap<Integer, String> joinedBy(
      Graph numbered, ImmutableList<Placement> placements) {
    var wholes = new HashMap<Placement, String>();
    var inRows = Parallel.where(placements.size(), id -> placements.get(id).isInRows());
    for (var op : inRows.length == 0 ? ImmutableList.<Op>of() : numbered.ops()) {
      if (op.def().has(OpTrait.CONCATENATION)) {
        for (var piece : op.args().getFirst().operands()) {
          if (placements.get(piece.id()).isInRows()) {
            wholes.put(placements.get(piece.id()), op.result().name());
          }
        }
      }
    }
    var joined = ImmutableMap.<Integer, String>builder();
    for (int id : inRows) {
      if (wholes.containsKey(placements.get(id))) {
        joined.put(id, Objects.requireNonNull(wholes.get(placements.get(id))));
      }
    }
    return joined.buildOrThrow();
  }

  /** The decisions, with what is known about results only when these have their places. */
  private static ImmutableList<ArgDecision> args(
      Collective collective,
      ImmutableList<ArgDecision> args,
      boolean inPlace,
      ImmutableMap<Integer, String> joined) {
    int operands = collective.operands().size();
    var decided = ImmutableList.<ArgDecision>builder();
    for (int i = 0; i < args.size(); i++) {
      var arg = args.get(i);
      @Nullable String whole =
          i < operands ? null : joined.get(collective.results().get(i - operands).id());
      if (whole != null) {
        decided.add(because(arg, Reason.WRITES_ROWS, whole));
      } else if (inPlace && arg.reason() == Reason.RESULT_WRITES) {
        decided.add(because(arg, Reason.IN_PLACE, args.get(i - operands).value()));
      } else {
        decided.add(arg);
      }
    }
    return decided.build();
  }

  private static ArgDecision because(ArgDecision arg, Reason reason, String cause) {
    return new ArgDecision(
        arg.result(), arg.value(), arg.realization(), reason, cause, arg.bytes());
  }

  private static ImmutableList<Integer> ids(ImmutableList<Value> values) {
    return values.stream().map(Value::id).collect(toImmutableList());
  }
}
