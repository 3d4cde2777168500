package dev.symplan.runtime.profile;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.cost.StepCosts;
import dev.symplan.planner.cost.Work;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Epilogue;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import dev.symplan.runtime.profile.Profile.Activity;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;

/**
 * A step of the plan with what was measured of it.
 *
 * @param index of the step in the rank's plan
 * @param what the op, how many are fused, or the kind of collective
 * @param kind the key that steps of the same work share
 * @param predicted microseconds
 * @param work empty for collectives
 * @param traffic empty for other steps than collectives
 */
public record ProfiledStep(
    Activity activity,
    int index,
    String what,
    String kind,
    double predicted,
    Optional<Work> work,
    Optional<Traffic> traffic) {

  /**
   * The traffic of a collective.
   *
   * @param collective the same on all ranks
   * @param bytes of the rank's operands
   * @param rate GB/s through the busier direction of the busiest rank's links
   * @param waited microseconds until the last rank of the group had begun
   */
  public record Traffic(int collective, String variant, long bytes, double rate, double waited) {}

  /**
   * {@return the bytes that it moves: of a collective, the rank's operands; of others, those of its
   * work}
   */
  public long bytes() {
    return traffic.map(Traffic::bytes).or(() -> work.map(Work::bytes)).orElse(0L);
  }

  /**
   * {@return the steps of all ranks in the order of the activities}
   *
   * @throws IllegalArgumentException when the profile is of another plan
   */
  public static ImmutableList<ProfiledStep> of(Plan plan, Profile profile) {
    return new Matching(plan, profile).match();
  }

  /** Finds the step of each activity by its label. */
  private static final class Matching {
    private final Plan plan;
    private final Profile profile;
    private final CostModel costs;
    private final Map<Integer, Map<String, Queue<Integer>>> steps = new HashMap<>();
    private final Map<Integer, Map<Integer, Activity>> collectives = new HashMap<>();

    Matching(Plan plan, Profile profile) {
      this.plan = plan;
      this.profile = profile;
      this.costs = new CostModel(plan.target());
    }

    ImmutableList<ProfiledStep> match() {
      var matched = new int[profile.activities().size()];
      for (int i = 0; i < matched.length; i++) {
        var activity = profile.activities().get(i);
        var queue =
            steps
                .computeIfAbsent(activity.rank(), this::byLabel)
                .getOrDefault(activity.label(), new ArrayDeque<>());
        var index = queue.poll();
        if (index == null) {
          throw new IllegalArgumentException(
              "the plan has no '%s' on rank %s".formatted(activity.label(), activity.rank()));
        }
        matched[i] = index;
        if (plan.forRank(activity.rank()).steps().get(index) instanceof Step.Start(int k)) {
          collectives.computeIfAbsent(k, _ -> new HashMap<>()).put(activity.rank(), activity);
        }
      }
      var list = ImmutableList.<ProfiledStep>builder();
      for (int i = 0; i < matched.length; i++) {
        list.add(profiled(profile.activities().get(i), matched[i]));
      }
      return list.build();
    }

    private Map<String, Queue<Integer>> byLabel(int rank) {
      var labels = new HashMap<String, Queue<Integer>>();
      var rankPlan = plan.forRank(rank);
      for (int i = 0; i < rankPlan.steps().size(); i++) {
        int index = i;
        label(rankPlan, rankPlan.steps().get(i))
            .ifPresent(label -> labels.computeIfAbsent(label, _ -> new ArrayDeque<>()).add(index));
      }
      return labels;
    }

    private static Optional<String> label(RankPlan rankPlan, Step step) {
      var ops = rankPlan.graph().ops();
      return switch (step) {
        case Step.Compute(int op) -> Optional.of(name(ops.get(op)));
        case Step.Fused(var list) -> Optional.of(name(ops.get(list.get(list.length() - 1))));
        case Step.Start(int k) -> Optional.of(name(ops.get(rankPlan.collectives().get(k).op())));
        case Step.Join _ -> Optional.empty();
      };
    }

    private static String name(Op op) {
      return op.results().isEmpty() || op.results().getFirst().name().isEmpty()
          ? op.def().name().toString()
          : op.results().getFirst().name();
    }

    private ProfiledStep profiled(Activity activity, int index) {
      var rankPlan = plan.forRank(activity.rank());
      var ops = rankPlan.graph().ops();
      return switch (rankPlan.steps().get(index)) {
        case Step.Compute(int op) -> {
          var name = ops.get(op).def().name().toString();
          yield new ProfiledStep(
              activity,
              index,
              name,
              name,
              new StepCosts(costs, rankPlan).computeMicros(index),
              Optional.of(Work.ofStep(rankPlan, index)),
              Optional.empty());
        }
        case Step.Fused(var list) -> {
          var work = Work.ofStep(rankPlan, index);
          yield new ProfiledStep(
              activity,
              index,
              "%s fused ops".formatted(list.length()),
              "fused ops",
              new StepCosts(costs, rankPlan).computeMicros(index),
              Optional.of(work),
              Optional.empty());
        }
        case Step.Start(int k) -> {
          var collective = rankPlan.collectives().get(k);
          var kind = Ascii.toLowerCase(collective.kind().name());
          yield new ProfiledStep(
              activity,
              index,
              kind,
              kind + " " + collective.variant().text(),
              collective.verdict().transferMicros()
                  + collective.epilogue().map(Epilogue::savedMicros).orElse(0.0),
              Optional.empty(),
              Optional.of(traffic(rankPlan, collective, k, activity)));
        }
        case Step.Join _ -> throw new IllegalArgumentException("a join does nothing");
      };
    }

    private Traffic traffic(
        RankPlan rankPlan, CollectivePlan collective, int index, Activity activity) {
      long bytes =
          collective.operands().stream()
              .mapToLong(id -> rankPlan.graph().values().get(id).tensor().bytes())
              .sum();
      var peers = collectives.getOrDefault(index, Map.of());
      var group = plan.group(collective.group());
      var members = group.members().get(group.partOf(activity.rank()).orElseThrow());
      double last =
          members.stream()
              .filter(peers::containsKey)
              .mapToDouble(rank -> peers.getOrDefault(rank, activity).begin())
              .max()
              .orElse(activity.begin());
      double wire = collective.spec().wire().bytes(bytes, members.length());
      return new Traffic(
          index,
          collective.variant().text(),
          bytes,
          activity.micros() > 0 ? wire / (1e3 * activity.micros()) : 0,
          Math.clamp(last - activity.begin(), 0, activity.micros()));
    }
  }
}
