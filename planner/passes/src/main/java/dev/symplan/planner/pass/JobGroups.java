package dev.symplan.planner.pass;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Maps;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.machine.DomainGroups;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.machine.Topology.Reach;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * The groups of a job, and where their ranks are.
 *
 * @param byName the program's groups, and those that hierarchical collectives may use
 * @param reaches how the ranks of each group lie, by name
 * @param domains the parts of each group between NVLink domains, by name
 */
public record JobGroups(
    Topology topology,
    ImmutableMap<String, ProcessGroup> byName,
    ImmutableMap<String, Reach> reaches,
    ImmutableMap<String, DomainGroups> domains) {

  /** {@return the groups of a program, on such hosts} */
  public static JobGroups of(ImmutableList<ProcessGroup> groups, Topology topology) {
    var declared = Maps.uniqueIndex(groups, ProcessGroup::name);
    var domains = ImmutableMap.<String, DomainGroups>builder();
    for (var group : groups) {
      DomainGroups.of(group, topology)
          .filter(own -> derived(own).map(ProcessGroup::name).noneMatch(declared::containsKey))
          .ifPresent(own -> domains.put(group.name(), own));
    }
    var known = domains.buildOrThrow();
    var all =
        Stream.concat(groups.stream(), known.values().stream().flatMap(JobGroups::derived))
            .collect(ImmutableList.toImmutableList());
    return new JobGroups(
        topology,
        Maps.uniqueIndex(all, ProcessGroup::name),
        all.stream().collect(ImmutableMap.toImmutableMap(ProcessGroup::name, topology::reach)),
        known);
  }

  private static Stream<ProcessGroup> derived(DomainGroups groups) {
    return Stream.of(groups.within(), groups.across());
  }

  /** {@return the program's groups, and others that collectives of its planned graphs name} */
  public ImmutableList<ProcessGroup> used(List<ProcessGroup> declared, List<Graph> graphs) {
    var used = new HashSet<String>();
    for (var graph : graphs) {
      Parallel.filter(graph.ops(), op -> op.def().collective().isPresent())
          .forEach(op -> used.add(op.collective().orElseThrow().group()));
    }
    return Stream.concat(
            declared.stream(),
            domains.values().stream()
                .flatMap(JobGroups::derived)
                .filter(group -> used.contains(group.name())))
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return the group called so} */
  public ProcessGroup get(String name) {
    return Objects.requireNonNull(byName.get(name));
  }

  /** {@return how the ranks of a group lie} */
  public Reach reach(String name) {
    return Objects.requireNonNull(reaches.get(name));
  }

  /** {@return the parts of a group, if it has as many ranks in each of several domains} */
  public Optional<DomainGroups> domains(String name) {
    return Optional.ofNullable(domains.get(name));
  }
}
