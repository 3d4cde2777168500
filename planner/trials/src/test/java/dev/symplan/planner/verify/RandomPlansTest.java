package dev.symplan.planner.verify;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.testkit.Cuts;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.verify.RandomPrograms.Planned;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** More, or others, with {@code -Dsymplan.plans=N -Dsymplan.seed=N}. */
@Tag("random")
class RandomPlansTest {
  private static final int PLANS = Integer.getInteger("symplan.plans", Fuzz.times(2_000));
  private static final long SEED = RandomPrograms.SEED;

  @Test
  void plansOfTheCompilerBreakNoRule() {
    int async = 0;
    int inPlace = 0;
    int ops = 0;
    int ranksDiffer = 0;
    int largerThanNeedBe = 0;
    int offloaded = 0;
    int inRows = 0;
    int copied = 0;
    int repeated = 0;
    for (long seed = SEED; seed < SEED + PLANS; seed++) {
      try {
        var planned = RandomPrograms.planned(seed);
        var plan = planned.plan();
        assertThat(PlanVerifier.verify(plan)).as("seed %s", seed).isEmpty();
        assertComputesTheSame(seed, planned);
        largerThanNeedBe += plan.total().bytes() > plan.total().bound() ? 1 : 0;
        copied += Cuts.hasCopies(plan.forRank(0).graph()) ? 1 : 0;
        repeated += repeats(plan) ? 1 : 0;
        offloaded += plan.rankPlans().stream().anyMatch(rank -> rank.hostBytes() > 0) ? 1 : 0;
        ranksDiffer += plan.rankPlans().size() - 1;
        inRows += plan.forRank(0).placements().stream().anyMatch(Placement::isInRows) ? 1 : 0;
        for (var rank : plan.rankPlans()) {
          ops += rank.steps().size();
          async += (int) rank.collectives().stream().filter(CollectivePlan::isAsync).count();
          inPlace += (int) rank.collectives().stream().filter(CollectivePlan::inPlace).count();
        }
      } catch (CompileException e) {
        assertThat(e).as("seed %s", seed).hasMessageMatching(RandomPrograms.REFUSED);
      } catch (RuntimeException e) {
        throw new AssertionError("seed " + seed + ": " + e.getMessage(), e);
      }
    }
    System.out.printf(
        "%s plans from seed %s: %s steps, %s with per-rank graphs, %s collectives beside compute,"
            + " %s in place, %s with more memory than is live at once, %s with tensors in the"
            + " host's memory, %s with rows of several tensors side by side, %s with copies between"
            + " graphs, %s with ops that run again%n",
        PLANS,
        SEED,
        ops,
        ranksDiffer,
        async,
        inPlace,
        largerThanNeedBe,
        offloaded,
        inRows,
        copied,
        repeated);
    assertThat(copied).isGreaterThan(PLANS / 100);
    assertThat(repeated).isGreaterThan(PLANS / 100);
    assertThat(inRows).isGreaterThan(PLANS / 100);
    assertThat(offloaded).isGreaterThan(PLANS / 200);
    assertThat(async).isGreaterThan(100);
    assertThat(inPlace).isGreaterThan(100);
    assertThat(ranksDiffer).isGreaterThan(100);
    assertThat(largerThanNeedBe).isLessThanOrEqualTo(PLANS / 100);
  }

  /** Whether ops run again though no limit asks for it. */
  private static boolean repeats(Plan plan) {
    return plan.rewrites().stream().noneMatch(one -> one.action() == Rewrite.Action.RECOMPUTED)
        && plan.forRank(0).graph().ops().stream().anyMatch(op -> op.label().contains("_again"));
  }

  /** A view of what an op gave back of its own argument, which another op had moved. */
  @Test
  void viewsFollowArgumentsThatWereMoved() {
    assertComputesTheSame(21_762, RandomPrograms.planned(21_762));
  }

  /** A gather that runs again before an op that may do anything. */
  @Test
  void whatIsGatheredAgainLeavesNothingBehind() {
    assertComputesTheSame(20_263_203, RandomPrograms.planned(20_263_203));
  }

  /** Compares what the plan computes in its memory with what the program computes without one. */
  private static void assertComputesTheSame(long seed, Planned planned) {
    var plan = planned.plan();
    for (int i = 0; i < plan.rankPlans().size(); i++) {
      int rank = plan.planOfRank().indexOf(i);
      var graph =
          planned.program().graphs().stream().filter(g -> g.runsOn(rank)).findFirst().orElseThrow();
      assertThat(
              new GraphModel(plan.rankPlans().get(i).graph()).computesLike(new GraphModel(graph)))
          .as("seed %s, rank %s: the plan's graph computes what the program does", seed, rank)
          .isTrue();
    }
    assertThat(new PlanOracle(plan).unsafe(plan)).as("seed %s", seed).isEmpty();
  }
}
