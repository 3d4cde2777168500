package dev.symplan.planner.machine;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A group whose parts each have as many ranks in several NVLink domains, as the groups of which a
 * hierarchical collective is made.
 *
 * @param within its ranks in each domain
 * @param across the ranks that are at the same position of each domain
 * @param inOrder whether the ranks of a domain follow each other in the group
 */
public record DomainGroups(ProcessGroup within, ProcessGroup across, boolean inOrder) {

  /** {@return the groups; empty where domains have other numbers of ranks, or only one each} */
  public static Optional<DomainGroups> of(ProcessGroup group, Topology topology) {
    var within = ImmutableList.<ImmutableIntArray>builder();
    var across = ImmutableList.<ImmutableIntArray>builder();
    boolean inOrder = true;
    int domains = 0;
    for (var part : group.members()) {
      var ranks = byDomain(part, topology);
      int each = ranks.getFirst().size();
      boolean equal = ranks.stream().allMatch(own -> own.size() == each);
      if (!equal || each < 2 || ranks.size() < 2 || (domains != 0 && domains != ranks.size())) {
        return Optional.empty();
      }
      domains = ranks.size();
      ranks.forEach(own -> within.add(ImmutableIntArray.copyOf(own)));
      for (int i = 0; i < each; i++) {
        int position = i;
        across.add(ImmutableIntArray.copyOf(ranks.stream().mapToInt(own -> own.get(position))));
      }
      inOrder &= part.asList().equals(ranks.stream().flatMap(List::stream).toList());
    }
    return Optional.of(
        new DomainGroups(
            new ProcessGroup(group.name() + ".within", within.build()),
            new ProcessGroup(group.name() + ".across", across.build()),
            inOrder));
  }

  private static List<List<Integer>> byDomain(ImmutableIntArray part, Topology topology) {
    Map<Integer, List<Integer>> ranks = new LinkedHashMap<>();
    part.forEach(
        rank -> ranks.computeIfAbsent(topology.domain(rank), _ -> new ArrayList<>()).add(rank));
    return List.copyOf(ranks.values());
  }
}
