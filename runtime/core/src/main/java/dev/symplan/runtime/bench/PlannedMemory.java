package dev.symplan.runtime.bench;

import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;

/**
 * The memory that a plan takes on one rank, in bytes.
 *
 * @param inputs that are not in an arena
 * @param outputs that are not in an arena
 */
public record PlannedMemory(long symmetric, long local, long inputs, long outputs) {

  /** {@return the planned memory of a rank} */
  public static PlannedMemory of(Plan plan, int rank) {
    var own = plan.forRank(rank);
    return new PlannedMemory(
        plan.symmetric().bytes(),
        own.local().bytes(),
        bytes(own, ArenaKind.EXTERNAL_INPUT),
        bytes(own, ArenaKind.EXTERNAL_OUTPUT));
  }

  private static long bytes(RankPlan plan, ArenaKind arena) {
    return plan.buffers().stream()
        .filter(buffer -> buffer.arena() == arena)
        .mapToLong(buffer -> buffer.bytes())
        .sum();
  }

  public long total() {
    return symmetric + local + inputs + outputs;
  }
}
