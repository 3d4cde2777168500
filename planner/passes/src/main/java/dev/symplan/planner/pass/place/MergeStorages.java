package dev.symplan.planner.pass.place;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.select.RealizeOperands;
import java.util.ArrayList;

/**
 * Finds when each storage holds data, and lets storages share memory. All ranks do in place what
 * all ranks can.
 */
public final class MergeStorages extends GraphPass {
  /** By rank class. */
  public static final Fact<ImmutableList<Lifetimes>> LIFETIMES = Fact.ofGraphs("lifetimes");

  /** By collective, whether its results lie in the memory of its operands. */
  public static final Fact<ImmutableList<Boolean>> IN_PLACE = Fact.ofGraphs("in-place collectives");

  public MergeStorages() {
    super(
        "merge",
        facts(RealizeOperands.REALIZED, ScheduleSteps.SCHEDULES),
        facts(LIFETIMES, IN_PLACE));
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    var graphs = state.get(RealizeOperands.REALIZED);
    var schedules = state.get(ScheduleSteps.SCHEDULES);
    var classes = new ArrayList<RankMerging>();
    for (int c = 0; c < graphs.size(); c++) {
      classes.add(new RankMerging(graphs.get(c), schedules.get(c)));
    }
    // A symmetric tensor may move only if it moves on all ranks alike.
    boolean alike = classes.size() == 1;
    classes.forEach(own -> own.mergeConcatenations(alike));
    var inPlace = ImmutableList.<Boolean>builder();
    for (int k = 0; k < graphs.getFirst().collectives().size(); k++) {
      int collective = k;
      boolean all = classes.stream().allMatch(own -> own.canBeInPlace(collective));
      if (all) {
        classes.forEach(own -> own.mergeCollective(collective));
      }
      inPlace.add(all);
    }
    classes.forEach(own -> own.mergeShares(context));
    classes.forEach(own -> own.mergeLocal(alike));
    return state
        .with(LIFETIMES, classes.stream().map(RankMerging::finish).collect(toImmutableList()))
        .with(IN_PLACE, inPlace.build());
  }
}
