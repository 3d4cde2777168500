package dev.symplan.planner.verify;

import dev.symplan.ir.diag.Units;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.ArenaSize;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.List;

/** {@link Rule#PLACEMENT} of buffers in their arenas, and the sizes of the arenas. */
final class ArenaRules {
  private final Plan plan;
  private final Findings findings;

  private ArenaRules(Plan plan, Findings findings) {
    this.plan = plan;
    this.findings = findings;
  }

  static void check(Plan plan, List<AliasModel> ranks, Findings findings) {
    var rules = new ArenaRules(plan, findings);
    long symmetricEnd = 0;
    for (var facts : ranks) {
      long localEnd = 0;
      for (var buffer : facts.plan.buffers()) {
        switch (buffer.arena()) {
          case SYMMETRIC -> {
            rules.checkInside(facts, buffer, plan.symmetric());
            symmetricEnd = Math.max(symmetricEnd, end(buffer));
          }
          case LOCAL -> {
            rules.checkInside(facts, buffer, facts.plan.local());
            localEnd = Math.max(localEnd, end(buffer));
          }
          // It is as large as its buffers are: RankPlan derives that from them.
          case HOST, EXTERNAL_INPUT, EXTERNAL_OUTPUT -> {}
        }
      }
      rules.checkSize("local", facts.rank(), facts.plan.local(), localEnd);
    }
    rules.checkSize("symmetric", -1, plan.symmetric(), symmetricEnd);
    if (ranks.size() == 1) {
      rules.checkBound(ranks.getFirst());
    }
  }

  private static long end(Buffer buffer) {
    return buffer.bytes() == 0 ? 0 : aligned(buffer.end());
  }

  private static long aligned(long bytes) {
    return (bytes + Alignment.BYTES - 1) / Alignment.BYTES * Alignment.BYTES;
  }

  private void checkInside(AliasModel facts, Buffer buffer, ArenaSize arena) {
    if (buffer.end() > arena.bytes()) {
      findings.add(
          Rule.PLACEMENT,
          facts.rank(),
          "the buffer %s of %s at %s extends beyond the %s arena of %s"
              .formatted(
                  buffer.name(),
                  Units.count(buffer.bytes(), "byte"),
                  buffer.offset(),
                  buffer.arena().text(),
                  arena.bytes()));
    }
  }

  private void checkSize(String name, int rank, ArenaSize arena, long end) {
    if (arena.bytes() != end) {
      findings.add(
          Rule.PLACEMENT,
          rank,
          "the %s arena has %s, but its buffers end at %s"
              .formatted(name, Units.count(arena.bytes(), "byte"), end));
    }
  }

  /** With one graph for all ranks, the bound is the most that is alive at once. */
  private void checkBound(AliasModel facts) {
    int end = facts.plan.steps().size();
    var change = new long[end + 3];
    for (var buffer : facts.plan.buffers()) {
      if (buffer.arena() == ArenaKind.SYMMETRIC && buffer.symmetric() && buffer.last() <= end) {
        change[buffer.first() + 1] += aligned(buffer.bytes());
        change[buffer.last() + 2] -= aligned(buffer.bytes());
      }
    }
    long live = 0;
    long most = 0;
    for (long delta : change) {
      live += delta;
      most = Math.max(most, live);
    }
    if (plan.symmetric().bound() != most) {
      findings.add(
          Rule.LIFETIME,
          "the plan gives the symmetric arena a bound of %s, but %s are live at once"
              .formatted(Units.count(plan.symmetric().bound(), "byte"), most));
    }
  }
}
