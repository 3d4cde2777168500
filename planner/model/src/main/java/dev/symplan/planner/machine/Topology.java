package dev.symplan.planner.machine;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * The hosts and NVLink domains on which a job's ranks are. Hosts fill domains in order. Ranks of
 * one domain address each other's memory, and no others do.
 *
 * @param placement the host of each rank
 * @param hostsPerDomain how many hosts one NVLink domain has
 */
public record Topology(Hosts placement, int hostsPerDomain) {
  public Topology {
    if (hostsPerDomain < 1) {
      throw new IllegalArgumentException("a domain needs a host");
    }
  }

  /** {@return the default topology: ranks fill hosts, each has as many as GPUs} */
  public static Topology of(int ranks, Target target) {
    var sizes = ImmutableIntArray.builder();
    for (int left = ranks; left > 0; left -= target.gpus()) {
      sizes.add(Math.min(left, target.gpus()));
    }
    return ofHosts(Hosts.filled(sizes.build()), target);
  }

  /** {@return the topology of these hosts} */
  public static Topology ofHosts(Hosts hosts, Target target) {
    return new Topology(hosts, target.hostsPerDomain());
  }

  /** {@return the number of ranks on all hosts} */
  public int ranks() {
    return placement.ranks();
  }

  /** {@return how many ranks each host has} */
  public ImmutableIntArray hosts() {
    return placement.sizes();
  }

  /** {@return the number of the host that a rank is on} */
  public int host(int rank) {
    return placement.ofRank().get(rank);
  }

  /** {@return the number of the NVLink domain that a rank is in} */
  public int domain(int rank) {
    return host(rank) / hostsPerDomain;
  }

  /** {@return how the ranks of a group lie} */
  public Reach reach(ProcessGroup group) {
    int domains = 1;
    int fewest = group.size();
    for (var part : group.members()) {
      var counts =
          part.stream()
              .mapToObj(this::domain)
              .collect(Collectors.groupingBy(domain -> domain, Collectors.counting()));
      domains = Math.max(domains, counts.size());
      fewest = (int) Math.min(fewest, counts.values().stream().mapToLong(n -> n).min().orElse(0));
    }
    return new Reach(group.size(), domains, fewest);
  }

  /** {@return the hosts as text, which {@link Hosts#parse} reads} */
  public String text() {
    return placement.text();
  }

  /** {@return the hosts as text; empty if they are those that the target implies} */
  public Optional<String> unlike(Target target) {
    return equals(of(ranks(), target)) ? Optional.empty() : Optional.of(text());
  }

  /**
   * How a group's ranks lie in NVLink domains.
   *
   * @param ranks how many each part of the group has
   * @param domains in how many domains the part is that is in most
   * @param fewest the ranks that a part has in a domain, where it has fewest
   */
  public record Reach(int ranks, int domains, int fewest) {
    public Reach {
      if (domains < 1 || fewest < 1 || fewest > ranks) {
        throw new IllegalArgumentException(
            "%s ranks cannot be in %s domains with %s in one".formatted(ranks, domains, fewest));
      }
    }

    /** {@return the reach of so many ranks of one domain} */
    public static Reach within(int ranks) {
      return new Reach(ranks, 1, ranks);
    }

    public boolean isWithinDomain() {
      return domains == 1;
    }
  }
}
