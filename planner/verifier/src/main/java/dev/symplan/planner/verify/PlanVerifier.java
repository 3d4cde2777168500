package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.PlanDigest;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.ArrayList;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * Checks a finished plan by the plan alone. It derives again from the ops' rules which values each
 * op reads, writes and shares, carries out each rank's steps on a map from bytes of memory to
 * tensors, and plays all ranks' collectives against each other.
 *
 * <p>The time is n·log n in the number of ops.
 */
public final class PlanVerifier {
  private PlanVerifier() {}

  /** {@return the rules that the plan breaks; none if it is safe} */
  public static ImmutableList<Violation> verify(Plan plan) {
    var findings = new Findings();
    StructureRules.check(plan, findings);
    if (findings.count() > 0) {
      return findings.violations();
    }
    var ranks = new ArrayList<AliasModel>();
    for (int i = 0; i < plan.rankPlans().size(); i++) {
      ranks.add(AliasModel.of(plan, i, findings));
    }
    if (findings.count() > 0) {
      return findings.violations();
    }
    // The checks only read what they share, and none needs what another one finds.
    findings.addAll(
        Stream.concat(
            ranks.stream().flatMap(facts -> checks(plan, facts)),
            Stream.of(
                found -> ArenaRules.check(plan, ranks, found),
                found -> AgreementRules.check(plan, ranks, found),
                found -> checkDigest(plan, found))));
    return findings.violations();
  }

  private static void checkDigest(Plan plan, Findings findings) {
    var digest = PlanDigest.of(plan);
    if (!digest.equals(plan.digest())) {
      findings.add(
          Rule.DIGEST,
          "the plan says %s, but its contents give %s".formatted(plan.digest(), digest));
    }
  }

  private static Stream<Consumer<Findings>> checks(Plan plan, AliasModel facts) {
    return Stream.of(
        findings -> PlacementRules.check(facts, findings),
        findings -> CollectiveRules.check(plan, facts, findings),
        findings -> WorkspaceRules.check(plan, facts, findings),
        findings -> ShardRules.check(plan, facts, findings),
        findings -> JoinedRules.check(plan, facts, findings),
        findings -> InPlaceRules.check(facts, findings),
        findings -> FusionRules.check(facts, findings),
        findings -> EpilogueRules.check(plan, facts, findings),
        findings -> BorderRules.check(facts, findings),
        findings -> SetupRules.check(facts, findings),
        findings -> HostCopyRules.check(facts, findings),
        findings -> HostInputRules.check(facts, findings),
        findings -> checkSteps(plan, facts, findings));
  }

  private static void checkSteps(Plan plan, AliasModel facts, Findings findings) {
    OrderRules.check(facts, findings);
    // Out of order, everything later would be found overwritten or unwritten too.
    if (findings.count() == 0) {
      findings.addAll(
          Stream.of(
              found -> MemoryRun.check(facts, found),
              found -> BarrierRules.check(plan, facts, found),
              found -> LifetimeRules.check(facts, found)));
    }
  }
}
