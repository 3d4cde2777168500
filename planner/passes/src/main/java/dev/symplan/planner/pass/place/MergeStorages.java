package dev.symplan.planner.pass.place;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.select.RealizeOperands;

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
    var merging = new Merging(state, context);
    var merged = merging.withRows(merging.without());
    return state
        .with(
            LIFETIMES,
            merged.classes().stream().map(RankMerging::finish).collect(toImmutableList()))
        .with(IN_PLACE, merged.inPlace());
  }
}
