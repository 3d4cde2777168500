package dev.symplan.codegen;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.planner.plan.Plan;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * A number for each collective of each rank: the same for all ranks that meet in it, and larger
 * than those of all that come before it on these ranks. Where all ranks have the same collectives,
 * it is the position among them.
 */
final class CollectiveNumbers {
  private final Plan plan;

  /** By rank and collective. */
  private final int[][] numbers;

  /** By rank, the collective that it comes to next, and the least number that this can have. */
  private final int[] next;

  private final int[] least;

  /** By the ranks that meet, how many of them are there. */
  private final Map<ImmutableIntArray, Integer> arrived = new HashMap<>();

  private final Deque<Integer> ready = new ArrayDeque<>();

  private CollectiveNumbers(Plan plan) {
    this.plan = plan;
    this.next = new int[plan.worldSize()];
    this.least = new int[plan.worldSize()];
    this.numbers =
        IntStream.range(0, plan.worldSize())
            .mapToObj(rank -> new int[plan.forRank(rank).collectives().size()])
            .toArray(int[][]::new);
  }

  /** {@return the numbers of a plan, whose ranks do not wait for each other in circles} */
  static CollectiveNumbers of(Plan plan) {
    var numbers = new CollectiveNumbers(plan);
    if (plan.rankPlans().size() == 1) {
      for (var own : numbers.numbers) {
        Arrays.setAll(own, k -> k);
      }
    } else {
      numbers.play();
    }
    return numbers;
  }

  private void play() {
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      ready.add(rank);
    }
    while (!ready.isEmpty()) {
      arrive(ready.remove());
    }
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      if (next[rank] < numbers[rank].length) {
        throw new IllegalStateException(
            "rank %s waits in collective %s".formatted(rank, next[rank]));
      }
    }
  }

  private void arrive(int rank) {
    if (next[rank] == numbers[rank].length) {
      return;
    }
    var group = plan.group(plan.forRank(rank).collectives().get(next[rank]).group());
    var members = group.members().get(group.partOf(rank).orElseThrow());
    int here = arrived.getOrDefault(members, 0) + 1;
    if (here < members.length()) {
      arrived.put(members, here);
      return;
    }
    arrived.remove(members);
    int number = members.stream().map(member -> least[member]).max().orElseThrow();
    members.forEach(
        member -> {
          numbers[member][next[member]++] = number;
          least[member] = number + 1;
          ready.add(member);
        });
  }

  int of(int rank, int collective) {
    return numbers[rank][collective];
  }
}
