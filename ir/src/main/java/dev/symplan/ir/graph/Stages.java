package dev.symplan.ir.graph;

import static com.google.common.collect.ImmutableList.toImmutableList;
import static com.google.common.collect.ImmutableSet.toImmutableSet;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Maps;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The graphs of a program by their collectives, such as the stages of a pipeline: those of one
 * stage have the same collectives in the same order, and where ranks of two of them meet, the k-th
 * of the one is the k-th of the other.
 *
 * @param graphs by stage, the indices of its graphs
 * @param between the names of groups in which ranks of several stages meet
 */
public record Stages(ImmutableList<ImmutableIntArray> graphs, ImmutableSet<String> between) {

  /** {@return the stages of graphs, each rank of which runs one} */
  public static Stages of(List<ProcessGroup> groups, List<Graph> graphs) {
    if (graphs.size() == 1) {
      return new Stages(ImmutableList.of(ImmutableIntArray.of(0)), ImmutableSet.of());
    }
    var collectives = graphs.stream().map(RankAgreement::collectives).toList();
    var meetings = Meetings.of(groups, graphs).stream().filter(Meetings::isBetweenGraphs).toList();
    var known = Maps.uniqueIndex(groups, ProcessGroup::name);
    var alike = new LinkedHashMap<List<?>, List<Integer>>();
    for (int g = 0; g < graphs.size(); g++) {
      var texts =
          collectives.get(g).stream()
              .map(
                  op ->
                      RankAgreement.describe(op)
                          + Optional.ofNullable(known.get(RankAgreement.groupName(op)))
                              .map(ProcessGroup::size)
                              .orElse(0))
              .toList();
      alike.computeIfAbsent(texts, _ -> new ArrayList<>()).add(g);
    }
    var stages =
        alike.values().stream()
            .flatMap(own -> split(own, meetings).stream())
            .map(ImmutableIntArray::copyOf)
            .collect(toImmutableList());
    var between =
        meetings.stream()
            .filter(
                own ->
                    stages.stream()
                            .filter(stage -> stage.stream().anyMatch(own.positions()::containsKey))
                            .count()
                        > 1)
            .flatMap(own -> names(own, collectives).stream())
            .collect(toImmutableSet());
    return new Stages(stages, between);
  }

  /** Graphs whose ranks meet in other collectives than the ones at the same position. */
  private static Collection<List<Integer>> split(List<Integer> alike, List<Meetings> meetings) {
    boolean together =
        meetings.stream()
            .allMatch(
                own ->
                    alike.stream()
                            .map(own.positions()::get)
                            .filter(at -> at != null && !at.isEmpty())
                            .distinct()
                            .count()
                        < 2);
    return together
        ? List.of(alike)
        : alike.stream()
            .collect(
                Collectors.groupingBy(
                    g ->
                        meetings.stream()
                            .map(own -> Optional.ofNullable(own.positions().get(g)))
                            .toList(),
                    LinkedHashMap::new,
                    Collectors.toList()))
            .values();
  }

  private static ImmutableSet<String> names(Meetings meetings, List<List<Op>> collectives) {
    return meetings.positions().entrySet().stream()
        .flatMap(own -> own.getValue().stream().mapToObj(k -> collectives.get(own.getKey()).get(k)))
        .map(RankAgreement::groupName)
        .collect(toImmutableSet());
  }

  /** {@return the stage of a graph} */
  public int stageOf(int graph) {
    return IntStream.range(0, graphs.size())
        .filter(stage -> graphs.get(stage).contains(graph))
        .findFirst()
        .orElseThrow();
  }
}
