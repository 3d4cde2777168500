package dev.symplan.planner.verify;

import static dev.symplan.planner.verify.PlannedRun.arena;
import static dev.symplan.planner.verify.PlannedRun.place;
import static dev.symplan.planner.verify.PlannedRun.require;
import static dev.symplan.planner.verify.PlannedRun.samePlace;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Says whether a plan is unsafe by carrying it out, with the work of side streams done as early, or
 * as late, as the steps allow. What an op finds must be what it finds when every tensor has memory
 * of its own; and the ranks must run the same collectives on memory that peers can reach, and touch
 * it at the right time only ({@link PeerOracle}).
 */
final class PlanOracle {
  private final Plan reference;
  private final List<GraphModel> models = new ArrayList<>();

  /**
   * @param reference a plan that is right
   */
  PlanOracle(Plan reference) {
    this.reference = reference;
    reference.rankPlans().forEach(rank -> models.add(new GraphModel(rank.graph())));
  }

  /** {@return why a plan of the same graphs is unsafe, if it is} */
  Optional<String> unsafe(Plan plan) {
    try {
      checkCollectives(plan);
      BorderOracle.check(plan);
      MeetingOracle.check(plan);
      for (int i = 0; i < plan.rankPlans().size(); i++) {
        var rank = plan.rankPlans().get(i);
        boolean beside = rank.collectives().stream().anyMatch(c -> c.isAsync());
        int index = i;
        boolean alike = rank.placements().stream().noneMatch(Placement::isShard);
        var ranks =
            IntStream.range(0, plan.worldSize())
                .filter(r -> plan.planOfRank().get(r) == index)
                .limit(alike ? 1 : plan.worldSize())
                .toArray();
        for (int number : ranks) {
          // Without side streams only the direction of elementwise ops differs.
          for (int mode = 0; mode < (beside ? PlannedRun.MODES : 2); mode++) {
            new PlannedRun(plan, number, models.get(i), mode).run();
          }
        }
      }
      return PeerOracle.unsafe(plan);
    } catch (PlannedRun.Unsafe e) {
      return Optional.of(e.getMessage());
    }
  }

  /** The part that no rank can see by itself. */
  private void checkCollectives(Plan plan) {
    for (int g = 0; g < plan.rankPlans().size(); g++) {
      var rank = plan.rankPlans().get(g);
      var known = reference.rankPlans().get(g).collectives();
      require(rank.collectives().size() == known.size(), "collectives are missing");
      for (int k = 0; k < known.size(); k++) {
        checkCollective(plan, rank, rank.collectives().get(k), known.get(k));
      }
    }
  }

  static boolean symmetric(CollectivePlan c, boolean result) {
    return c.spec().needsSymmetric(result);
  }

  private static void checkCollective(
      Plan plan, RankPlan rank, CollectivePlan own, CollectivePlan known) {
    require(
        own.op() == known.op()
            && own.kind() == known.kind()
            && own.group().equals(known.group())
            && own.reduceOp().equals(known.reduceOp())
            && own.root() == known.root()
            && own.operands().equals(known.operands())
            && own.results().equals(known.results()),
        "another collective than the graph's");
    require(
        Stream.concat(own.operands().stream(), own.results().stream())
            .allMatch(id -> rank.placements().get(id).exists()),
        "moves what has no memory");
    int size = plan.group(own.group()).size();
    require(
        own.variant() == Variant.CUSTOM || (size == 1) == (own.variant() == Variant.LOCAL),
        "wrong variant for the group");
    if (own.variant() == Variant.MULTIMEM || own.variant() == Variant.MULTIMEM_ONE_SHOT) {
      require(plan.multicast() && plan.target().multicast(), "no multicast");
      require(own.reduceOp().orElse(ReduceOp.SUM) == ReduceOp.SUM, "the switch only adds");
    }
    if (!Set.of(Variant.NCCL, Variant.LOCAL, Variant.CUSTOM).contains(own.variant())) {
      for (var part : plan.group(own.group()).members()) {
        require(
            part.stream().mapToLong(r -> domain(plan, r)).distinct().count() == 1,
            "peers are on other hosts");
      }
    }
    boolean same = true;
    for (int i = 0; i < own.operands().size(); i++) {
      same &= samePlace(rank, own.operands().get(i), own.results().get(i));
    }
    require(own.inPlace() == same, "in place is a lie");
    require(!same || own.spec().allowsInPlace(), "cannot be in place");
    for (int id : own.results()) {
      require(
          !rank.placements().get(id).isInRows() || own.spec().writesRows(), "it writes no rows");
    }
    checkReach(rank, own, own.operands(), false);
    checkReach(rank, own, own.results(), true);
  }

  private static long domain(Plan plan, int rank) {
    return plan.topology().placement().ofRank().get(rank) / plan.target().hostsPerDomain();
  }

  private static void checkReach(
      RankPlan rank, CollectivePlan collective, ImmutableList<Integer> values, boolean result) {
    if (symmetric(collective, result)) {
      for (int id : values) {
        require(arena(rank, id) == ArenaKind.SYMMETRIC, "peers cannot reach it");
        require(place(rank, id) % 16 == 0, "not aligned");
      }
    }
  }
}
