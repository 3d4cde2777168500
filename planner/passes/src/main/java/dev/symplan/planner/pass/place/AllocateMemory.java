package dev.symplan.planner.pass.place;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.pass.Fact;
import dev.symplan.planner.pass.GraphPass;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.select.RealizeOperands;
import dev.symplan.planner.plan.ArenaSize;
import dev.symplan.planner.plan.RankPlan;
import java.util.concurrent.ForkJoinTask;

/** Gives every storage an arena and an offset ({@link Allocate}). */
public final class AllocateMemory extends GraphPass {
  /** The symmetric arena, the same on all ranks. */
  public static final Fact<ArenaSize> SYMMETRIC_ARENA = Fact.ofGraphs("symmetric arena");

  /** By rank class, with all barriers. */
  public static final Fact<ImmutableList<RankPlan>> PLACED = Fact.ofGraphs("placed plans");

  public AllocateMemory() {
    super(
        "allocate",
        facts(
            RealizeOperands.REALIZED,
            ScheduleSteps.SCHEDULES,
            MergeStorages.LIFETIMES,
            MergeStorages.IN_PLACE,
            ReserveWorkspaces.WORKSPACES),
        facts(SYMMETRIC_ARENA, PLACED));
  }

  @Override
  public GraphState run(GraphState state, PassContext context) {
    // Neither needs the other.
    var numbered = ForkJoinTask.adapt(() -> RankPlans.numbered(state)).fork();
    var memory =
        Allocate.run(
            state.get(RealizeOperands.REALIZED),
            state.get(ScheduleSteps.SCHEDULES),
            state.get(MergeStorages.LIFETIMES),
            state.get(ReserveWorkspaces.WORKSPACES));
    return state
        .with(SYMMETRIC_ARENA, memory.symmetric())
        .with(PLACED, RankPlans.of(state, numbered.join(), memory.ranks()));
  }

  /** {@return the size of both arenas together, on the rank that needs most} */
  public static long totalBytes(GraphState state) {
    return state.get(SYMMETRIC_ARENA).bytes()
        + state.get(PLACED).stream().mapToLong(rank -> rank.local().bytes()).max().orElse(0);
  }
}
