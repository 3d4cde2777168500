package dev.symplan.ir.graph;

import static com.google.common.collect.ImmutableSet.toImmutableSet;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.collect.Maps;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The collectives in which ranks of some graphs meet: those of a group, or of several under other
 * names, that has ranks of all these graphs in its parts. The n-th of one graph is the n-th of the
 * others.
 *
 * <p>Graphs whose ranks never meet, such as the stages of a pipeline, may have any collectives.
 *
 * @param positions by the index of a graph, which of its collectives these are, ascending; none
 *     where its ranks are in the parts but have no such collective
 */
public record Meetings(ImmutableSortedMap<Integer, ImmutableIntArray> positions) {

  /** The collectives of a graph that name a group. */
  private record Use(int graph, String group) {}

  /**
   * {@return all collectives of the graphs, by where their ranks meet}
   *
   * @param groups those that are known; of others, all ranks may be in one part
   * @param graphs those that ranks run, each rank one of them
   */
  public static ImmutableList<Meetings> of(List<ProcessGroup> groups, List<Graph> graphs) {
    var positions = new LinkedHashMap<Use, ImmutableIntArray.Builder>();
    for (int g = 0; g < graphs.size(); g++) {
      var names = RankAgreement.collectives(graphs.get(g)).stream().map(RankAgreement::groupName);
      int k = 0;
      for (var name : names.toList()) {
        positions.computeIfAbsent(new Use(g, name), _ -> ImmutableIntArray.builder()).add(k++);
      }
    }
    var known = Maps.uniqueIndex(groups, ProcessGroup::name);
    var joined = new HashMap<Use, Use>();
    var firstOfPart = new LinkedHashMap<Object, Use>();
    for (var use : positions.keySet()) {
      for (var part : parts(use.group(), known, graphs.get(use.graph()))) {
        @Nullable Use first = firstOfPart.putIfAbsent(part, use);
        if (first != null && !root(first, joined).equals(root(use, joined))) {
          joined.put(root(use, joined), root(first, joined));
        }
      }
    }
    var all = new LinkedHashMap<Use, TreeMap<Integer, ImmutableIntArray>>();
    positions.forEach(
        (use, own) ->
            all.computeIfAbsent(root(use, joined), _ -> new TreeMap<>())
                .merge(use.graph(), own.build(), Meetings::merged));
    var graphOfRank = graphOfRank(graphs);
    firstOfPart.forEach(
        (part, use) -> {
          if (part instanceof ImmutableIntArray ranks) {
            var own = Objects.requireNonNull(all.get(root(use, joined)));
            ranks.stream()
                .mapToObj(graphOfRank::get)
                .filter(Objects::nonNull)
                .forEach(graph -> own.putIfAbsent(graph, ImmutableIntArray.of()));
          }
        });
    return all.values().stream()
        .map(ImmutableSortedMap::copyOfSorted)
        .map(Meetings::new)
        .collect(ImmutableList.toImmutableList());
  }

  private static Map<Integer, Integer> graphOfRank(List<Graph> graphs) {
    var graphOfRank = new HashMap<Integer, Integer>();
    for (int g = 0; g < graphs.size(); g++) {
      for (int rank : graphs.get(g).ranks().asList()) {
        graphOfRank.put(rank, g);
      }
    }
    return graphOfRank;
  }

  /** The parts of a group that have ranks of a graph. */
  private static ImmutableSet<Object> parts(
      String name, ImmutableMap<String, ProcessGroup> known, Graph graph) {
    @Nullable ProcessGroup group = known.get(name);
    if (group == null) {
      return ImmutableSet.of(name);
    }
    if (graph.ranks().isEmpty()) {
      return ImmutableSet.copyOf(group.members());
    }
    return graph.ranks().stream()
        .flatMap(rank -> group.partOf(rank).stream())
        .distinct()
        .mapToObj(group.members()::get)
        .collect(toImmutableSet());
  }

  private static Use root(Use use, Map<Use, Use> joined) {
    var root = use;
    while (joined.get(root) instanceof Use next) {
      root = next;
    }
    return root;
  }

  private static ImmutableIntArray merged(ImmutableIntArray a, ImmutableIntArray b) {
    return ImmutableIntArray.copyOf(
        Stream.of(a, b).flatMapToInt(ImmutableIntArray::stream).sorted());
  }

  /** {@return the collectives of the first graph} */
  public ImmutableIntArray ofFirst() {
    return positions.values().asList().getFirst();
  }

  /** {@return whether ranks of several graphs meet} */
  public boolean isBetweenGraphs() {
    return positions.size() > 1;
  }
}
