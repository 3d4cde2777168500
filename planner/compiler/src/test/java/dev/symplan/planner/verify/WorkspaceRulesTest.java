package dev.symplan.planner.verify;

import static dev.symplan.planner.verify.PlanEdits.at;
import static dev.symplan.planner.verify.PlanEdits.lives;
import static dev.symplan.planner.verify.VerifierFixtures.CHAIN;
import static dev.symplan.planner.verify.VerifierFixtures.RANKS;
import static dev.symplan.planner.verify.VerifierFixtures.compileWithWorkspaces;
import static dev.symplan.planner.verify.VerifierFixtures.first;
import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.verify.Violation.Rule;
import org.junit.jupiter.api.Test;

/** Rules that a plan must keep so that peers may push without asking. */
class WorkspaceRulesTest {
  private static final Plan PLAN = compileWithWorkspaces(CHAIN);

  /** Two groups: two workspaces on each rank. */
  private static final Plan GROUPS = compileWithWorkspaces(RANKS);

  private static PlanEdits edits() {
    return PlanEdits.of(PLAN);
  }

  private static CollectivePlan only() {
    return PLAN.rankPlans().getFirst().collectives().getFirst();
  }

  @Test
  void eachGroupHasAWorkspaceThatLivesAllTheTime() {
    assertThat(only().variant()).isEqualTo(Variant.ONE_SHOT_PUSH);
    var buffer = PLAN.rankPlans().getFirst().buffers().get(only().workspace());
    // Two halves, three peers, and 32 x 64 numbers of 4 bytes.
    assertThat(buffer.bytes()).isEqualTo(2 * 3 * 32 * 64 * 4);
    assertThat(buffer.first()).isEqualTo(-1);
    assertThat(buffer.last()).isEqualTo(PLAN.rankPlans().getFirst().steps().size());
    assertThat(PLAN.symmetric().bytes()).isGreaterThanOrEqualTo(buffer.bytes());
    for (var rank : GROUPS.rankPlans()) {
      var pairs = rank.collectives().get(1);
      assertThat(rank.collectives().get(0).workspace()).isNotEqualTo(pairs.workspace());
      assertThat(rank.buffers().get(pairs.workspace()).bytes()).isEqualTo(2 * 64 * 64 * 4);
    }
  }

  @Test
  void anotherTensorThere() {
    var plan = edits().over("a", "workspace 0").restated();
    assertThat(first(plan, Rule.RACE).message())
        .isEqualTo("a overlaps workspace 0 in symmetric memory, where peers push at any time");
    var workspace = new Placement(only().workspace(), 0);
    plan = edits().placement("a", workspace).plan();
    assertThat(PlanVerifier.verify(plan))
        .anyMatch(v -> v.message().equals("a lies in workspace 0, where peers push"));
  }

  @Test
  void tooSmallOrElsewhere() {
    var plan = edits().buffer("workspace 0", b -> sized(b, 49152 - 256)).restated();
    assertThat(first(plan, Rule.REALIZATION).message())
        .endsWith("needs a workspace of 49152 bytes, but workspace 0 has 48896");
    plan = edits().buffer("workspace 0", b -> sized(b, 49152 + 128)).restated();
    assertThat(first(plan, Rule.PLACEMENT).message())
        .startsWith(
            "the halves of workspace 0, 49280 bytes at 0, do not begin at multiples of 128");
    plan = edits().buffer("workspace 0", b -> at(b, ArenaKind.LOCAL, false, 1 << 20)).restated();
    assertThat(first(plan, Rule.REALIZATION).message())
        .isEqualTo(
            "workspace 0, in local memory, is not a symmetric buffer: peers cannot push there");
  }

  private static Buffer sized(Buffer b, long bytes) {
    return new Buffer(b.name(), b.arena(), b.symmetric(), b.offset(), bytes, b.first(), b.last());
  }

  @Test
  void onlyWhileItsCollectiveRuns() {
    var plan = edits().buffer("workspace 0", b -> lives(b, 3, 3)).plan();
    assertThat(first(plan, Rule.LIFETIME).message())
        .isEqualTo(
            "the plan says that workspace 0 lives from step 3 to 3, but peers may push there from"
                + " -1 to 5");
  }

  @Test
  void noneOrOneTooMany() {
    var plan =
        edits().collective(0, c -> PlanEdits.workspace(c, CollectivePlan.NO_WORKSPACE)).plan();
    assertThat(PlanVerifier.verify(plan))
        .anyMatch(v -> v.message().endsWith("is one_shot_push, which needs a workspace"));
    plan = edits().collective(0, c -> PlanEdits.variant(c, Variant.ONE_SHOT)).plan();
    assertThat(PlanVerifier.verify(plan))
        .anyMatch(v -> v.message().endsWith("is one_shot, which needs no workspace"));
    plan = edits().collective(0, c -> PlanEdits.workspace(c, 99)).plan();
    assertThat(first(plan, Rule.STRUCTURE).message()).startsWith("buffer 99 does not exist");
  }

  @Test
  void twoGroupsInOne() {
    int first = GROUPS.rankPlans().getFirst().collectives().getFirst().workspace();
    int other = GROUPS.rankPlans().getLast().collectives().getFirst().workspace();
    var plan =
        PlanEdits.of(GROUPS)
            .collective(0, 1, c -> PlanEdits.workspace(c, first))
            .collective(1, 1, c -> PlanEdits.workspace(c, other))
            .plan();
    assertThat(first(plan, Rule.RACE).message())
        .contains("of group tp on the compute stream and")
        .contains("of group pairs on the compute stream share workspace 0");
  }

  @Test
  void atOtherPlacesOnOtherRanks() {
    var plan =
        PlanEdits.of(GROUPS)
            .buffer(1, "workspace 1", b -> at(b, b.offset() + (1 << 20)))
            .restated();
    assertThat(first(plan, Rule.AGREEMENT).rank()).isEqualTo(1);
    assertThat(PlanVerifier.verify(plan))
        .anyMatch(v -> v.message().contains("has workspace offset"));
  }
}
