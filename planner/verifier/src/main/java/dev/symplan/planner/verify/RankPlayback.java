package dev.symplan.planner.verify;

import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Deque;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * Plays the ranks against each other: each issues its steps in order, each stream works in order,
 * and a collective ends when every rank has come to it. All must come to their ends.
 *
 * <p>One player stands for all ranks that run a plan. Every player of a stage takes part in every
 * collective of it, and every player with ranks in the groups of a crossing in its collectives: a
 * group's ranks cannot wait less than these do.
 */
final class RankPlayback {

  /** The ranks of one plan. */
  private static final class Player {
    final AliasModel facts;
    final Map<StreamKind, Deque<Integer>> queues = new EnumMap<>(StreamKind.class);
    final BitSet arrived = new BitSet();

    /** By collective, the number of what it is on all ranks. */
    final int[] meetings;

    int next;

    Player(AliasModel facts) {
      this.facts = facts;
      this.meetings = new int[facts.plan.collectives().size()];
      for (var stream : StreamKind.values()) {
        queues.put(stream, new ArrayDeque<>());
      }
    }
  }

  private final List<Player> players = new ArrayList<>();
  private final BitSet done = new BitSet();

  /** By meeting, how many players have yet to come to it. */
  private final List<Integer> missing = new ArrayList<>();

  private RankPlayback(List<AliasModel> ranks, StageModel stages) {
    ranks.forEach(facts -> players.add(new Player(facts)));
    for (var stage : stages.stages()) {
      var first = players.get(stage.get(0));
      for (int k = 0; k < first.meetings.length; k++) {
        int position = k;
        var within = stages.within(stage, k);
        within.forEach(p -> players.get(p).meetings[position] = missing.size());
        missing.add(within.length());
      }
    }
    for (var crossing : stages.crossings()) {
      int count = crossing.count();
      for (int i = 0; i < count; i++) {
        int position = i;
        crossing
            .collectives()
            .forEach((p, own) -> players.get(p).meetings[own.get(position)] = missing.size());
        missing.add(crossing.collectives().size());
      }
    }
  }

  static void check(List<AliasModel> ranks, StageModel stages, Findings findings) {
    var game = new RankPlayback(ranks, stages);
    game.play();
    game.report(findings);
  }

  private void play() {
    boolean moved = true;
    while (moved) {
      moved = false;
      for (var player : players) {
        moved |= advance(player);
      }
    }
  }

  private boolean advance(Player player) {
    int before = player.next;
    boolean moved = drain(player);
    var steps = player.facts.plan.steps();
    while (player.next < steps.size() && issue(player, steps.get(player.next))) {
      player.next++;
      drain(player);
    }
    return moved || player.next > before;
  }

  /** Issues a step; false when the rank waits before it. */
  private boolean issue(Player player, Step step) {
    return switch (step) {
      case Step.Compute _, Step.Fused _ -> true;
      case Step.Join(int k) -> done.get(player.meetings[k]);
      case Step.Start(int k) -> {
        var stream = player.facts.plan.collectives().get(k).stream();
        if (stream != StreamKind.COMPUTE) {
          player.queues.computeIfAbsent(stream, key -> new ArrayDeque<>()).add(k);
          yield true;
        }
        arrive(player, k);
        yield done.get(player.meetings[k]);
      }
    };
  }

  /** Lets the side streams come to their next collectives, and past those that are done. */
  private boolean drain(Player player) {
    boolean moved = false;
    for (var queue : player.queues.values()) {
      while (!queue.isEmpty()) {
        moved |= arrive(player, queue.peek());
        if (!done.get(player.meetings[queue.element()])) {
          break;
        }
        queue.remove();
        moved = true;
      }
    }
    return moved;
  }

  private boolean arrive(Player player, int k) {
    if (player.arrived.get(k)) {
      return false;
    }
    player.arrived.set(k);
    int meeting = player.meetings[k];
    missing.set(meeting, missing.get(meeting) - 1);
    if (missing.get(meeting) == 0) {
      done.set(meeting);
    }
    return true;
  }

  private void report(Findings findings) {
    var waiting = players.stream().filter(p -> p.next < p.facts.plan.steps().size()).toList();
    if (waiting.isEmpty()) {
      return;
    }
    var first = waiting.getFirst();
    findings.add(
        Rule.AGREEMENT,
        first.facts.rank(),
        first.next,
        "the ranks wait for each other: rank %s waits in %s"
            .formatted(first.facts.rank(), first.facts.words.stepText(first.next)),
        waiting.stream()
            .map(
                p ->
                    "rank %s waits in %s".formatted(p.facts.rank(), p.facts.words.stepText(p.next)))
            .toList());
  }
}
