package dev.symplan.planner.verify;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;

/** The verifier's own view of where ranks are: it goes through the hosts that the plan lists. */
final class HostModel {
  private final int[] domainOfRank;

  HostModel(Plan plan) {
    this.domainOfRank = new int[plan.worldSize()];
    int rank = 0;
    for (int host : plan.topology().placement().ofRank().asList()) {
      domainOfRank[rank++] = host / plan.target().hostsPerDomain();
    }
  }

  /** {@link Rule#STRUCTURE}: the target has hosts as the plan lists them. */
  static void check(Plan plan, Findings findings) {
    var topology = plan.topology();
    if (topology.hostsPerDomain() != plan.target().hostsPerDomain()) {
      findings.add(
          Rule.STRUCTURE,
          "an NVLink domain has %s hosts, but the target says %s"
              .formatted(topology.hostsPerDomain(), plan.target().hostsPerDomain()));
    }
    var counts = new TreeMap<Integer, Integer>();
    topology.placement().ofRank().forEach(host -> counts.merge(host, 1, Integer::sum));
    for (var entry : counts.entrySet()) {
      int host = entry.getKey();
      int ranks = entry.getValue();
      if (ranks > plan.target().gpus()) {
        findings.add(
            Rule.STRUCTURE,
            "host %s has %s ranks, but a host of the target has %s GPUs"
                .formatted(host, ranks, plan.target().gpus()));
        return;
      }
    }
  }

  /**
   * {@return whether NCCL itself carries windows between domains: by kernels that gather or scatter
   * since 2.30.3, by copy engines that gather or exchange since 2.30.7}
   */
  static boolean allowsWindows(Plan plan, CollectivePlan collective) {
    if (!plan.target().network().windows()) {
      return false;
    }
    int nccl = plan.target().nccl();
    return switch (collective.kind()) {
      case ALL_GATHER ->
          collective.variant() == Variant.NCCL_CE && nccl >= 23007
              || collective.variant() == Variant.NCCL_SYMM
                  && nccl >= 23003
                  && plan.multicast()
                  && plan.target().multicast();
      case REDUCE_SCATTER -> collective.variant() == Variant.NCCL_SYMM && nccl >= 23003;
      case ALL_TO_ALL -> collective.variant() == Variant.NCCL_CE && nccl >= 23007;
      case ALL_REDUCE, BROADCAST, COLLECTIVE_PERMUTE, CUSTOM -> false;
    };
  }

  /** {@return the NVLink domains of these ranks if they are several; empty for one} */
  Optional<TreeSet<Integer>> apart(ImmutableIntArray ranks) {
    var domains = new TreeSet<Integer>();
    ranks.forEach(rank -> domains.add(domainOfRank[rank]));
    return domains.size() == 1 ? Optional.empty() : Optional.of(domains);
  }
}
