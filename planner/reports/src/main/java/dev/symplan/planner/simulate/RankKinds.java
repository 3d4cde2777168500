package dev.symplan.planner.simulate;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * Ranks by kind: two ranks are of one kind if they run the same plan at the same rates, and the
 * ranks that they meet in each group are of the same kinds. Then they do everything at the same
 * time.
 *
 * @param ofRank by rank, its kind
 * @param ranks by kind, a rank of it
 */
record RankKinds(ImmutableIntArray ofRank, ImmutableIntArray ranks) {

  static RankKinds of(Scenario scenario) {
    var plan = scenario.job().plan();
    var groups = scenario.job().groups().values();
    var kinds =
        numbered(
            IntStream.range(0, plan.worldSize())
                .mapToObj(
                    rank ->
                        List.of(
                            plan.planOfRank().get(rank),
                            scenario.rail(rank),
                            scenario.compute(rank)))
                .toList());
    // Kinds only split, so that they are final once their number stays.
    for (int before = 0; before < count(kinds); ) {
      before = count(kinds);
      kinds = split(kinds, groups);
    }
    var first = new int[count(kinds)];
    for (int rank = kinds.length - 1; rank >= 0; rank--) {
      first[kinds[rank]] = rank;
    }
    return new RankKinds(ImmutableIntArray.copyOf(kinds), ImmutableIntArray.copyOf(first));
  }

  private static int count(int[] kinds) {
    return Arrays.stream(kinds).max().orElse(-1) + 1;
  }

  private static int[] split(int[] kinds, Collection<ProcessGroup> groups) {
    var keys = new ArrayList<List<Object>>();
    for (int kind : kinds) {
      keys.add(new ArrayList<>(List.of(kind)));
    }
    for (var group : groups) {
      for (var part : group.members()) {
        var met = sorted(kinds, part);
        part.forEach(rank -> keys.get(rank).add(met));
      }
    }
    return numbered(keys);
  }

  private static ImmutableIntArray sorted(int[] kinds, ImmutableIntArray ranks) {
    return ImmutableIntArray.copyOf(ranks.stream().map(rank -> kinds[rank]).sorted());
  }

  private static int[] numbered(List<? extends List<?>> keys) {
    Map<List<?>, Integer> numbers = new HashMap<>();
    return keys.stream()
        .mapToInt(
            key -> {
              int next = numbers.size();
              return numbers.computeIfAbsent(key, _ -> next);
            })
        .toArray();
  }

  /** {@return the kinds of the ranks that a rank meets in a group, itself included, sorted} */
  ImmutableIntArray met(ProcessGroup group, int rank) {
    var part = group.members().get(group.partOf(rank).orElseThrow());
    return ImmutableIntArray.copyOf(part.stream().map(ofRank::get).sorted());
  }

  int count() {
    return ranks.length();
  }

  /** {@return how many ranks are of a kind} */
  int size(int kind) {
    return (int) ofRank.stream().filter(own -> own == kind).count();
  }
}
