package dev.symplan.planner.machine;

import com.google.common.base.Splitter;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The hosts and NVLink domains on which a job's ranks are. Ranks fill hosts in order, hosts fill
 * domains in order. Ranks of one domain address each other's memory, and no others do.
 *
 * @param ends by host, the rank after its last one
 * @param hostsPerDomain how many hosts one NVLink domain has
 */
public record Topology(ImmutableIntArray ends, int hostsPerDomain) {
  private static final Pattern ITEM = Pattern.compile("(?:([1-9][0-9]{0,5})x)?([1-9][0-9]{0,5})");

  public Topology {
    if (ends.isEmpty() || hostsPerDomain < 1) {
      throw new IllegalArgumentException("a topology needs a host, and a domain at least one");
    }
    int start = 0;
    for (int host = 0; host < ends.length(); host++) {
      if (ends.get(host) <= start) {
        throw new IllegalArgumentException("host %s has no rank".formatted(host));
      }
      start = ends.get(host);
    }
  }

  /** {@return the default topology: each host has as many ranks as GPUs} */
  public static Topology of(int ranks, Target target) {
    int hosts = (ranks - 1) / target.gpus() + 1;
    var ends =
        IntStream.rangeClosed(1, hosts)
            .map(host -> (int) Math.min(ranks, (long) host * target.gpus()));
    return new Topology(ImmutableIntArray.copyOf(ends), target.hostsPerDomain());
  }

  /**
   * {@return the topology of these hosts}
   *
   * @param hosts how many ranks each has
   */
  public static Topology ofHosts(ImmutableIntArray hosts, Target target) {
    var ends = hosts.toArray();
    Arrays.parallelPrefix(ends, Integer::sum);
    return new Topology(ImmutableIntArray.copyOf(ends), target.hostsPerDomain());
  }

  /**
   * {@return how many ranks each host has, by a text such as {@code 4x8} (four hosts of eight
   * ranks) or {@code 8,4}; empty if it is neither, or has more ranks than a job can have}
   */
  public static Optional<ImmutableIntArray> hosts(String text) {
    var hosts = new ArrayList<Integer>();
    long ranks = 0;
    for (var item : Splitter.on(',').split(text)) {
      var match = ITEM.matcher(item);
      if (!match.matches()) {
        return Optional.empty();
      }
      int count = match.group(1) == null ? 1 : Integer.parseInt(match.group(1));
      int each = Integer.parseInt(match.group(2));
      ranks += (long) count * each;
      if (ranks > ProcessGroup.MAX_RANKS) {
        return Optional.empty();
      }
      for (int i = 0; i < count; i++) {
        hosts.add(each);
      }
    }
    return Optional.of(ImmutableIntArray.copyOf(hosts));
  }

  /** {@return the number of ranks on all hosts} */
  public int ranks() {
    return ends.get(ends.length() - 1);
  }

  /** {@return how many ranks each host has} */
  public ImmutableIntArray hosts() {
    return ImmutableIntArray.copyOf(
        IntStream.range(0, ends.length())
            .map(host -> ends.get(host) - (host == 0 ? 0 : ends.get(host - 1))));
  }

  /** {@return the number of the host that a rank is on} */
  public int host(int rank) {
    int low = 0;
    int high = ends.length() - 1;
    while (low < high) {
      int middle = (low + high) / 2;
      if (rank < ends.get(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
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

  /**
   * {@return the hosts as text, for example {@code 4x8} or {@code 8,4}; {@link #hosts} reads it}
   */
  public String text() {
    return text(hosts());
  }

  /**
   * {@return the same of hosts}
   *
   * @param hosts how many ranks each has
   */
  public static String text(ImmutableIntArray hosts) {
    var items = new ArrayList<String>();
    for (int from = 0; from < hosts.length(); ) {
      int to = from;
      while (to < hosts.length() && hosts.get(to) == hosts.get(from)) {
        to++;
      }
      items.add(to - from == 1 ? "" + hosts.get(from) : (to - from) + "x" + hosts.get(from));
      from = to;
    }
    return String.join(",", items);
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
