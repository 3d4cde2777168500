package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.Plan;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The verifier's own view of which rank plans must have the same collectives, by who is in whose
 * groups. The plans of a stage access each other's memory, or wait for each other by barriers of
 * the plan: they have the same ones. Ranks of different stages meet in plain NCCL only, in which a
 * rank counts on nothing but that the others come to the same call.
 */
final class StageModel {

  /**
   * Collectives in which ranks of several stages meet.
   *
   * @param collectives by rank plan, in its order; all those with ranks in the groups' parts
   */
  record Crossing(TreeMap<Integer, List<Integer>> collectives) {
    /** {@return the number of collectives of each rank plan, where they agree} */
    int count() {
      return collectives.values().iterator().next().size();
    }
  }

  private final Plan plan;

  /** By rank plan, the first one of its stage. */
  private final int[] stageOf;

  private final List<Crossing> crossings = new ArrayList<>();

  /** By rank plan and collective, the crossing that it is of. */
  private final int[][] crossingOf;

  private static final int WITHIN = -1;

  StageModel(Plan plan) {
    this.plan = plan;
    int count = plan.rankPlans().size();
    this.stageOf = IntStream.range(0, count).toArray();
    this.crossingOf = new int[count][];
    for (int p = 0; p < count; p++) {
      crossingOf[p] = new int[plan.rankPlans().get(p).collectives().size()];
      Arrays.fill(crossingOf[p], WITHIN);
    }
    if (count > 1) {
      var met = metBy(plan);
      linkStages(met);
      findCrossings(met);
    }
  }

  /** By rank plan and group of its collectives, the parts that its ranks are in. */
  private static List<Map<String, List<ImmutableIntArray>>> metBy(Plan plan) {
    var met = new ArrayList<Map<String, List<ImmutableIntArray>>>();
    for (var rankPlan : plan.rankPlans()) {
      var own = new LinkedHashMap<String, List<ImmutableIntArray>>();
      rankPlan.collectives().forEach(c -> own.putIfAbsent(c.group(), new ArrayList<>()));
      met.add(own);
    }
    for (int p = 0; p < plan.rankPlans().size(); p++) {
      int index = p;
      met.get(p)
          .forEach(
              (name, parts) -> {
                for (var part : plan.group(name).members()) {
                  if (part.stream().anyMatch(rank -> plan.planOfRank().get(rank) == index)) {
                    parts.add(part);
                  }
                }
              });
    }
    return met;
  }

  private BitSet plansIn(List<ImmutableIntArray> parts) {
    var plans = new BitSet();
    parts.forEach(part -> part.forEach(rank -> plans.set(plan.planOfRank().get(rank))));
    return plans;
  }

  private void linkStages(List<Map<String, List<ImmutableIntArray>>> met) {
    for (int p = 0; p < stageOf.length; p++) {
      var linked = new HashSet<String>();
      for (var collective : plan.rankPlans().get(p).collectives()) {
        if (collective.variant() != Variant.NCCL && linked.add(collective.group())) {
          var others = plansIn(met.get(p).getOrDefault(collective.group(), List.of()));
          int index = p;
          others.stream().forEach(other -> link(index, other));
        }
      }
    }
  }

  private void link(int a, int b) {
    int first = Math.min(stageOf[a], stageOf[b]);
    int gone = Math.max(stageOf[a], stageOf[b]);
    for (int p = 0; first != gone && p < stageOf.length; p++) {
      stageOf[p] = stageOf[p] == gone ? first : stageOf[p];
    }
  }

  /** The groups of rank plans that have a part in common, under whichever names, are one place. */
  private void findCrossings(List<Map<String, List<ImmutableIntArray>>> met) {
    if (Arrays.stream(stageOf).distinct().count() == 1) {
      return;
    }
    var placeOfPart = new HashMap<ImmutableIntArray, Place>();
    var places = new LinkedHashSet<Place>();
    for (int p = 0; p < stageOf.length; p++) {
      for (var use : met.get(p).entrySet()) {
        var place = new Place();
        place.plans.or(plansIn(use.getValue()));
        place.uses.add(new Use(p, use.getKey()));
        places.add(place);
        for (var part : use.getValue()) {
          @Nullable Place other = placeOfPart.get(part);
          if (other == null) {
            place.parts.add(part);
            placeOfPart.put(part, place);
          } else if (other != place) {
            places.remove(other);
            place.take(other);
            other.parts.forEach(taken -> placeOfPart.put(taken, place));
          }
        }
      }
    }
    places.stream()
        .filter(place -> place.plans.stream().map(p -> stageOf[p]).distinct().count() > 1)
        .forEach(this::addCrossing);
  }

  private record Use(int rankPlan, String group) {}

  private static final class Place {
    final BitSet plans = new BitSet();
    final Set<Use> uses = new HashSet<>();
    final List<ImmutableIntArray> parts = new ArrayList<>();

    void take(Place other) {
      plans.or(other.plans);
      uses.addAll(other.uses);
      parts.addAll(other.parts);
    }
  }

  private void addCrossing(Place place) {
    var collectives = new TreeMap<Integer, List<Integer>>();
    for (int p : place.plans.stream().toArray()) {
      var own = new ArrayList<Integer>();
      var all = plan.rankPlans().get(p).collectives();
      for (int k = 0; k < all.size(); k++) {
        if (place.uses.contains(new Use(p, all.get(k).group()))) {
          own.add(k);
          crossingOf[p][k] = crossings.size();
        }
      }
      collectives.put(p, own);
    }
    crossings.add(new Crossing(collectives));
  }

  /** {@return the rank plans of each stage} */
  ImmutableList<ImmutableIntArray> stages() {
    return IntStream.range(0, stageOf.length)
        .filter(p -> stageOf[p] == p)
        .mapToObj(
            first ->
                ImmutableIntArray.copyOf(
                    IntStream.range(0, stageOf.length).filter(p -> stageOf[p] == first)))
        .collect(ImmutableList.toImmutableList());
  }

  List<Crossing> crossings() {
    return crossings;
  }

  /** {@return the rank plans of a stage whose k-th collective is not with ranks of another one} */
  ImmutableIntArray within(ImmutableIntArray stage, int k) {
    return ImmutableIntArray.copyOf(stage.stream().filter(p -> crossingOf[p][k] == WITHIN));
  }
}
