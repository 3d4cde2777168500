package dev.symplan.planner.verify;

import static dev.symplan.planner.verify.PlannedRun.require;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Lets all ranks of a plan run, rank by rank and stream by stream, whatever graphs they have: a
 * collective ends when all ranks of its part have come to it. Those that meet must mean the same,
 * and find symmetric tensors at the same offsets; and all ranks must come to their ends.
 */
final class MeetingOracle {

  private final class Runner {
    final int rank;
    final List<Step> steps;
    final Map<StreamKind, Deque<Integer>> queues = new EnumMap<>(StreamKind.class);
    final Set<Integer> arrived = new HashSet<>();
    final Set<Integer> done = new HashSet<>();
    int next;

    Runner(int rank) {
      this.rank = rank;
      this.steps = plan.forRank(rank).steps();
    }

    CollectivePlan collective(int k) {
      return plan.forRank(rank).collectives().get(k);
    }

    boolean advance() {
      boolean moved = false;
      for (var queue : queues.values()) {
        @Nullable Integer head = queue.peek();
        while (head != null && comes(head)) {
          moved = true;
          queue.remove();
          head = queue.peek();
        }
      }
      while (next < steps.size() && passes(steps.get(next))) {
        next++;
        moved = true;
      }
      return moved;
    }

    private boolean passes(Step step) {
      return switch (step) {
        case Step.Compute _, Step.Fused _ -> true;
        case Step.Join(int k) -> done.contains(k);
        case Step.Start(int k) when collective(k).stream() != StreamKind.COMPUTE -> {
          queues.computeIfAbsent(collective(k).stream(), _ -> new ArrayDeque<>()).add(k);
          yield true;
        }
        case Step.Start(int k) -> comes(k);
      };
    }

    private boolean comes(int k) {
      if (arrived.add(k)) {
        arrive(this, k);
      }
      return done.contains(k);
    }
  }

  /** The n-th collective of the ranks of a part, in the order of their plans. */
  private record Meeting(ImmutableIntArray part, int number) {}

  private record Arrival(Runner runner, int k) {
    CollectivePlan collective() {
      return runner.collective(k);
    }
  }

  private final Plan plan;
  private final List<Runner> runners = new ArrayList<>();
  private final Map<Meeting, List<Arrival>> meetings = new HashMap<>();

  private MeetingOracle(Plan plan) {
    this.plan = plan;
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      runners.add(new Runner(rank));
    }
  }

  static void check(Plan plan) {
    new MeetingOracle(plan).run();
  }

  private void run() {
    boolean moved = true;
    while (moved) {
      moved = false;
      for (var runner : runners) {
        moved |= runner.advance();
      }
    }
    for (var runner : runners) {
      require(runner.next == runner.steps.size(), "ranks wait for each other");
    }
  }

  private void arrive(Runner runner, int k) {
    var part = part(runner, k);
    int number = 0;
    for (int before = 0; before < k; before++) {
      number += part(runner, before).equals(part) ? 1 : 0;
    }
    var arrivals = meetings.computeIfAbsent(new Meeting(part, number), _ -> new ArrayList<>());
    arrivals.add(new Arrival(runner, k));
    if (arrivals.size() == part.length()) {
      arrivals.forEach(other -> compare(arrivals.getFirst(), other));
      arrivals.forEach(other -> other.runner().done.add(other.k()));
    }
  }

  private ImmutableIntArray part(Runner runner, int k) {
    var group = plan.group(runner.collective(k).group());
    return group.members().get(group.partOf(runner.rank).orElseThrow());
  }

  private void compare(Arrival one, Arrival other) {
    var a = one.collective();
    var b = other.collective();
    require(
        a.kind() == b.kind()
            && a.reduceOp().equals(b.reduceOp())
            && a.root() == b.root()
            && a.variant() == b.variant(),
        "ranks run another algorithm");
    require(a.variant() == Variant.NCCL || a.inPlace() == b.inPlace(), "one rank is in place");
    if (PlanOracle.symmetric(b, false)) {
      require(places(one, a.operands()).equals(places(other, b.operands())), "operands elsewhere");
    }
    if (PlanOracle.symmetric(b, true)) {
      require(places(one, a.results()).equals(places(other, b.results())), "results elsewhere");
    }
  }

  private List<Long> places(Arrival at, ImmutableList<Integer> values) {
    var own = plan.forRank(at.runner().rank);
    return values.stream().map(id -> PlannedRun.place(own, id)).toList();
  }
}
