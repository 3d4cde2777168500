package dev.symplan.planner.pass.place;

import static com.google.common.collect.ImmutableMap.toImmutableMap;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Lists;
import com.google.common.collect.Multimaps;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.Barrier.Edge;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;

/**
 * Leaves out the barriers that others of the same group make redundant, and notes which these are.
 *
 * <p>The barriers of a group are points in the order of the steps. Peers touch a rank's memory in a
 * collective only after the last point before it where the ranks really meet, and before the first
 * such point after it. So a collective needs one point after the last step before it that touches
 * that memory, and one before the first such step after it: two intervals of points, each of which
 * must hold one that is kept. The fewest points that do are found from the intervals by their right
 * ends, as always when intervals are to be stabbed.
 *
 * <p>Points are the barriers of collectives that are on the compute stream on all ranks, and whose
 * barriers are the plan's own; all others keep theirs and stand in for none. No interval reaches
 * beyond a collective of another group: between two groups, each with a barrier that stands in, the
 * order of the two would matter.
 */
final class BarrierElision {
  /** How many steps a barrier is looked for; the time must not grow with the square of them. */
  private static final int MAX_STEPS = 128;

  /** The facts that a rank knows of its own memory. */
  private static final class Rank {
    final RankPlan plan;
    final List<Value> values;
    final int[] stepOf;

    /** By tensor, the storages that it may be in, as they are defined, if it may move. */
    final ImmutableMap<Value, ImmutableList<Value>> storages;

    Rank(RankPlan plan) {
      this.plan = plan;
      this.values = plan.graph().values();
      this.storages = storages(plan.graph());
      this.stepOf = new int[plan.collectives().size()];
      for (int s = 0; s < plan.steps().size(); s++) {
        if (plan.steps().get(s) instanceof Step.Start(int k)) {
          stepOf[k] = s;
        }
      }
    }

    /** Only ops without a rule leave open where a tensor is. */
    private static ImmutableMap<Value, ImmutableList<Value>> storages(Graph graph) {
      if (Parallel.filter(graph.ops(), op -> op.def().rule().isEmpty()).isEmpty()) {
        return ImmutableMap.of();
      }
      var aliases = Aliases.of(graph);
      var families =
          Multimaps.index(
              Lists.transform(aliases.storages(), Aliases.Storage::value), aliases::family);
      return graph.values().stream()
          .filter(value -> value.isTensor() && !aliases.families().isAlone(aliases.id(value)))
          .collect(toImmutableMap(value -> value, value -> families.get(aliases.family(value))));
    }

    CollectivePlan at(int k) {
      return plan.collectives().get(k);
    }

    /** Whether an op touches what peers touch in a collective, where one of both writes. */
    boolean touches(int k, int op) {
      if (plan.graph().ops().get(op).def().isFence()) {
        return true;
      }
      var collective = at(k);
      if (collective.spec().needsSymmetricOperand()
          && collective.operands().stream().anyMatch(id -> writes(op, id))) {
        return true;
      }
      return collective.spec().needsSymmetricResult()
          && collective.results().stream().anyMatch(id -> writes(op, id) || reads(op, id));
    }

    private boolean writes(int op, int id) {
      var does = plan.graph().ops().get(op);
      return does.results().stream().anyMatch(result -> mayOverlap(result, id))
          || does.written().stream().anyMatch(value -> mayOverlap(value, id));
    }

    private boolean reads(int op, int id) {
      return plan.graph().ops().get(op).operands().stream()
          .anyMatch(value -> mayOverlap(value, id));
    }

    /** Whether a tensor lies, or may lie, where another one does. */
    private boolean mayOverlap(Value value, int id) {
      return overlap(value, id)
          || storages.getOrDefault(value, ImmutableList.of()).stream()
              .anyMatch(one -> overlap(one, id));
    }

    private boolean overlap(Value value, int id) {
      if (!value.isTensor() || !plan.placement(value).exists()) {
        return false;
      }
      var other = values.get(id);
      return plan.buffer(value).arena() == ArenaKind.SYMMETRIC
          && plan.buffer(other).arena() == ArenaKind.SYMMETRIC
          && begin(value) < begin(other) + extent(other)
          && begin(other) < end(value);
    }

    /** A tensor that lies elsewhere on each rank may be anywhere after its beginning. */
    private long end(Value value) {
      return plan.placement(value).isShard()
          ? plan.buffer(value).end()
          : begin(value) + extent(value);
    }

    /** What lies between rows counts with them. */
    private long extent(Value value) {
      return plan.placement(value).extent(value.tensor().storageBytes());
    }

    private long begin(Value value) {
      return plan.buffer(value).offset() + plan.placement(value).offset();
    }
  }

  /** The points of which one must be kept, both ends included. */
  private record Interval(int from, int to) {}

  private final ImmutableList<RankPlan> plans;
  private final List<Rank> ranks;

  /** By collective, the point of its start barrier; its end's is the next. -1 for others. */
  private final int[] points;

  private final List<Integer> collectiveOf = new ArrayList<>();

  private BarrierElision(ImmutableList<RankPlan> plans) {
    this.plans = plans;
    this.ranks = plans.stream().map(Rank::new).toList();
    this.points = new int[plans.getFirst().collectives().size()];
    Arrays.fill(points, -1);
    for (int k = 0; k < points.length; k++) {
      int index = k;
      if (ranks.stream().allMatch(rank -> isPlanned(rank.at(index)))) {
        points[k] = 2 * collectiveOf.size();
        collectiveOf.add(k);
      }
    }
  }

  /** {@return the plans of the ranks, with the barriers that are left} */
  static ImmutableList<RankPlan> run(ImmutableList<RankPlan> plans) {
    return new BarrierElision(plans).run();
  }

  private static boolean isPlanned(CollectivePlan collective) {
    return collective.stream() == StreamKind.COMPUTE && collective.variant().hasPlannedBarriers();
  }

  private ImmutableList<RankPlan> run() {
    var intervals = new ArrayList<Interval>();
    for (int k : collectiveOf) {
      int from = ranks.stream().mapToInt(rank -> reachBack(rank, k)).max().orElseThrow();
      int to = ranks.stream().mapToInt(rank -> reachAhead(rank, k)).min().orElseThrow();
      intervals.add(new Interval(from, points[k]));
      intervals.add(new Interval(points[k] + 1, to));
    }
    intervals.sort(Comparator.comparingInt(Interval::to).thenComparing(Interval::from));
    var kept = new BitSet();
    for (var interval : intervals) {
      int next = kept.nextSetBit(interval.from());
      if (next < 0 || next > interval.to()) {
        kept.set(interval.to());
      }
    }
    return plans.stream().map(plan -> apply(plan, kept)).collect(ImmutableList.toImmutableList());
  }

  /** The earliest point from which nothing of this rank touches what peers touch in k. */
  private int reachBack(Rank rank, int k) {
    int reach = points[k];
    int last = rank.stepOf[k];
    for (int s = last - 1; s >= Math.max(0, last - MAX_STEPS); s--) {
      int other = collective(rank, s);
      if (separates(rank, k, other)) {
        break;
      }
      boolean point = other >= 0 && points[other] >= 0;
      if (point && touchesInKernel(rank, k, other)) {
        break;
      }
      reach = point ? points[other] + 1 : reach;
      if (touches(rank, k, s)) {
        break;
      }
      reach = point ? points[other] : reach;
    }
    return reach;
  }

  /**
   * Whether the step right before a collective touches what peers touch in k. It may run in the
   * collective's kernel, whose meetings then say nothing about it.
   */
  private static boolean touchesInKernel(Rank rank, int k, int other) {
    int maker = rank.stepOf[other] - 1;
    return maker >= 0
        && rank.at(other).spec().takesMakers()
        && switch (rank.plan.steps().get(maker)) {
          case Step.Compute _, Step.Fused _ -> touches(rank, k, maker);
          case Step.Start _, Step.Join _ -> false;
        };
  }

  /** The latest point up to which nothing of this rank touches what peers touch in k. */
  private int reachAhead(Rank rank, int k) {
    int reach = points[k] + 1;
    int first = rank.stepOf[k];
    int end = Math.min(rank.plan.steps().size(), first + 1 + MAX_STEPS);
    for (int s = first + 1; s < end; s++) {
      int other = collective(rank, s);
      if (separates(rank, k, other)) {
        break;
      }
      boolean point = other >= 0 && points[other] >= 0;
      reach = point ? points[other] : reach;
      if (touches(rank, k, s)) {
        break;
      }
      reach = point ? points[other] + 1 : reach;
    }
    return reach;
  }

  /** The collective that a step starts, or -1. */
  private static int collective(Rank rank, int step) {
    return rank.plan.steps().get(step) instanceof Step.Start(int k) ? k : -1;
  }

  private static boolean separates(Rank rank, int k, int other) {
    return other >= 0
        && isPlanned(rank.at(other))
        && !rank.at(other).group().equals(rank.at(k).group());
  }

  private static boolean touches(Rank rank, int k, int step) {
    return switch (rank.plan.steps().get(step)) {
      case Step.Compute(int op) -> rank.touches(k, op);
      case Step.Fused(var ops) -> ops.stream().anyMatch(op -> rank.touches(k, op));
      case Step.Start(int other) ->
          rank.touches(k, rank.at(other).op())
              // Its epilogue may run before its end, where others may rely on that.
              || (other != k && rank.at(other).hasEpilogue() && touches(rank, k, step + 1));
      case Step.Join(int other) -> rank.touches(k, rank.at(other).op());
    };
  }

  private RankPlan apply(RankPlan plan, BitSet kept) {
    var collectives = ImmutableList.<CollectivePlan>builder();
    for (int k = 0; k < points.length; k++) {
      var collective = plan.collectives().get(k);
      int start = points[k];
      collectives.add(
          start < 0
              ? collective
              : collective.withBarriers(
                  barrier(start, kept.previousSetBit(start)),
                  barrier(start + 1, kept.nextSetBit(start + 1))));
    }
    return new RankPlan(
        plan.graph(),
        plan.placements(),
        plan.buffers(),
        plan.steps(),
        collectives.build(),
        plan.local());
  }

  private Barrier barrier(int wanted, int kept) {
    return wanted == kept
        ? new Barrier.Own()
        : new Barrier.StandIn(collectiveOf.get(kept / 2), kept % 2 == 0 ? Edge.START : Edge.END);
  }
}
