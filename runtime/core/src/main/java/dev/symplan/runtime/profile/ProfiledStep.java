package dev.symplan.runtime.profile;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import dev.symplan.runtime.profile.Profile.Activity;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;

/**
 * A step of the plan with what was measured of it.
 *
 * @param what the op, or the kind of collective
 * @param predicted microseconds
 * @param traffic empty for other steps than collectives
 */
record ProfiledStep(Activity activity, String what, double predicted, Optional<Traffic> traffic) {

  /**
   * What a collective moved.
   *
   * @param collective the same on all ranks
   * @param bytes of the rank's operands
   * @param rate GB/s through the busier direction of the busiest rank's links
   * @param waited microseconds until the last rank of the group had begun
   */
  record Traffic(int collective, String variant, long bytes, double rate, double waited) {}

  /** {@return the steps of all ranks in the order of the activities} */
  static ImmutableList<ProfiledStep> of(Plan plan, Profile profile) {
    return new Matching(plan, profile).match();
  }

  /** Finds the step of each activity by its label. */
  private static final class Matching {
    private final Plan plan;
    private final Profile profile;
    private final CostModel costs;
    private final Map<Integer, Map<String, Queue<Step>>> steps = new HashMap<>();
    private final Map<Integer, Map<Integer, Activity>> collectives = new HashMap<>();

    Matching(Plan plan, Profile profile) {
      this.plan = plan;
      this.profile = profile;
      this.costs = new CostModel(plan.target());
    }

    ImmutableList<ProfiledStep> match() {
      var matched = new Step[profile.activities().size()];
      for (int i = 0; i < matched.length; i++) {
        var activity = profile.activities().get(i);
        var queue =
            steps
                .computeIfAbsent(activity.rank(), this::byLabel)
                .getOrDefault(activity.label(), new ArrayDeque<>());
        var step = queue.poll();
        if (step == null) {
          throw new IllegalArgumentException(
              "the plan has no '%s' on rank %d".formatted(activity.label(), activity.rank()));
        }
        matched[i] = step;
        if (step instanceof Step.Start(int k)) {
          collectives.computeIfAbsent(k, _ -> new HashMap<>()).put(activity.rank(), activity);
        }
      }
      var list = ImmutableList.<ProfiledStep>builder();
      for (int i = 0; i < matched.length; i++) {
        list.add(profiled(profile.activities().get(i), matched[i]));
      }
      return list.build();
    }

    private Map<String, Queue<Step>> byLabel(int rank) {
      var labels = new HashMap<String, Queue<Step>>();
      var rankPlan = plan.forRank(rank);
      for (var step : rankPlan.steps()) {
        label(rankPlan, step)
            .ifPresent(label -> labels.computeIfAbsent(label, _ -> new ArrayDeque<>()).add(step));
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

    private ProfiledStep profiled(Activity activity, Step step) {
      var rankPlan = plan.forRank(activity.rank());
      var ops = rankPlan.graph().ops();
      return switch (step) {
        case Step.Compute(int op) ->
            new ProfiledStep(
                activity,
                ops.get(op).def().name().toString(),
                costs.computeMicros(ops.get(op)),
                Optional.empty());
        case Step.Fused(var list) ->
            new ProfiledStep(
                activity,
                "%d fused ops".formatted(list.length()),
                costs.kernelMicros(moved(rankPlan, list)),
                Optional.empty());
        case Step.Start(int k) -> {
          var collective = rankPlan.collectives().get(k);
          yield new ProfiledStep(
              activity,
              Ascii.toLowerCase(collective.kind().name()),
              collective.verdict().transferMicros(),
              Optional.of(traffic(rankPlan, collective, k, activity)));
        }
        case Step.Join _ -> throw new IllegalArgumentException("a join does nothing");
      };
    }

    private static long moved(RankPlan rankPlan, ImmutableIntArray list) {
      var values = new HashSet<Value>();
      list.forEach(
          index -> {
            var op = rankPlan.graph().ops().get(index);
            values.addAll(op.operands());
            values.addAll(op.results());
          });
      return values.stream()
          .filter(value -> value.isTensor() && rankPlan.placement(value).exists())
          .mapToLong(value -> value.tensor().bytes())
          .sum();
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
