package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.ArenaSize;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import java.util.function.Predicate;

/**
 * The use of one rank's arena.
 *
 * @param bytes its size
 * @param bound the least that any placement of all required buffers needs
 * @param live the most bytes that are live in it at one step
 * @param peakStep the first such step; -1 for before the first
 */
record Arenas(ArenaKind arena, long bytes, long bound, long live, int peakStep) {

  /** {@return the arenas of a rank, the symmetric one first, the host's last if it has one} */
  static ImmutableList<Arenas> of(Plan plan, RankPlan rankPlan) {
    var device =
        ImmutableList.of(
            of(rankPlan, ArenaKind.SYMMETRIC, plan.symmetric()),
            of(rankPlan, ArenaKind.LOCAL, rankPlan.local()));
    return rankPlan.hostBytes() == 0
        ? device
        : ImmutableList.<Arenas>builder().addAll(device).add(host(rankPlan)).build();
  }

  private static Arenas host(RankPlan plan) {
    long bound = Peak.of(plan, buffer -> buffer.arena() == ArenaKind.HOST).bytes();
    return of(plan, ArenaKind.HOST, new ArenaSize(plan.hostBytes(), bound));
  }

  private static Arenas of(RankPlan plan, ArenaKind arena, ArenaSize size) {
    var peak = Peak.of(plan, buffer -> buffer.arena() == arena);
    return new Arenas(arena, size.bytes(), size.bound(), peak.bytes(), peak.step());
  }

  /** {@return the part of it, in percent, that is never in use: what packing lost} */
  double fragmentation() {
    return bytes == 0 ? 0 : 100.0 * (bytes - Math.min(bytes, live)) / bytes;
  }

  /**
   * The most bytes that are live at one step.
   *
   * @param step the first step at which they are; -1 for before the first
   */
  record Peak(long bytes, int step) {
    static Peak of(RankPlan plan, Predicate<Buffer> counts) {
      var live = profile(plan, counts);
      int at = 0;
      for (int i = 1; i < live.length; i++) {
        at = live[i] > live[at] ? i : at;
      }
      return new Peak(live[at], at - 1);
    }
  }

  /**
   * {@return the bytes that are live at each step, from the one before the first to the one after
   * the last}
   */
  static long[] profile(RankPlan plan, Predicate<Buffer> counts) {
    var change = new long[plan.steps().size() + 3];
    for (var buffer : plan.buffers()) {
      if (counts.test(buffer)) {
        change[buffer.first() + 1] += buffer.alignedBytes();
        change[buffer.last() + 2] -= buffer.alignedBytes();
      }
    }
    var live = new long[plan.steps().size() + 2];
    long now = 0;
    for (int i = 0; i < live.length; i++) {
      now += change[i];
      live[i] = now;
    }
    return live;
  }
}
