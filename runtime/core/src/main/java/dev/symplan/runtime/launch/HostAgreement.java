package dev.symplan.runtime.launch;

import com.google.common.collect.ImmutableSortedSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction;
import dev.symplan.codegen.Instruction.Border;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Instruction.GroupUse;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.RecordEvent;
import dev.symplan.codegen.Instruction.SetupEnd;
import dev.symplan.ir.diag.Span;
import dev.symplan.planner.machine.OverNetwork;
import dev.symplan.runtime.failure.RunException;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Compares where a plan expects ranks with where they are: those that reach each other's memory
 * must be on one host. It looks at what the instructions do, not at what the planner believed.
 */
final class HostAgreement {
  private HostAgreement() {}

  /**
   * Ranks that must be on one host, and why.
   *
   * @param overNetwork whether NCCL has windows for it between hosts, too
   */
  private record Need(
      ImmutableIntArray members, String what, String variant, Span span, boolean overNetwork) {}

  /**
   * Checks all ranks of an executable.
   *
   * @param hosts of the ranks
   * @param windows whether NCCL itself carries windows between hosts, where it can
   * @throws RunException when ranks are apart that may not be; the same on all ranks
   */
  static void check(Executable executable, List<Host> hosts, boolean windows) {
    if (hosts.stream().map(Host::id).distinct().count() == 1) {
      return;
    }
    needs(executable)
        .filter(need -> !(windows && need.overNetwork()))
        .filter(
            need ->
                need.members().stream().mapToObj(rank -> hosts.get(rank).id()).distinct().count()
                    > 1)
        .findFirst()
        .ifPresent(
            need -> {
              throw new RunException(
                  "'%s' (%s) runs as %s, for which ranks %s must be on one host; but %s. %s"
                      .formatted(
                          need.what(),
                          need.span().shortForm(),
                          need.variant(),
                          text(need.members().stream()),
                          where(hosts),
                          advice(hosts)));
            });
  }

  private static Stream<Need> needs(Executable executable) {
    return executable.ranks().stream()
        .flatMap(program -> program.instructions().stream())
        .flatMap(instruction -> need(instruction).stream());
  }

  /** {@return the other ranks that must be on the host of a rank} */
  static ImmutableSortedSet<Integer> peers(Executable executable, int rank) {
    return needs(executable)
        .map(Need::members)
        .distinct()
        .filter(members -> members.contains(rank))
        .flatMapToInt(ImmutableIntArray::stream)
        .filter(member -> member != rank)
        .boxed()
        .collect(ImmutableSortedSet.toImmutableSortedSet(Comparator.naturalOrder()));
  }

  private static Optional<Need> need(Instruction instruction) {
    return switch (instruction) {
      case Collective c when c.spec().reachesPeers() ->
          Optional.of(
              new Need(
                  c.group().members(),
                  c.name(),
                  c.variant().text(),
                  c.span(),
                  OverNetwork.of(c.kind(), c.variant()).isPresent()));
      case LocalOp op ->
          op.group()
              .map(GroupUse::members)
              .map(members -> new Need(members, op.name(), "a custom op", op.span(), false));
      case Collective _, Fused _, Border _, SetupEnd _, RecordEvent _, Instruction.AwaitEvent _ ->
          Optional.empty();
    };
  }

  private static String text(IntStream ranks) {
    return ranks.mapToObj(Integer::toString).collect(Collectors.joining(", "));
  }

  private static String advice(List<Host> hosts) {
    var text = Host.ofRanks(hosts).text();
    return "Plan for these hosts: --hosts " + (text.contains("[") ? "'" + text + "'" : text);
  }

  /** {@return for example {@code ranks 0, 1 are on a, rank 2 is on b}} */
  private static String where(List<Host> hosts) {
    var names = new TreeMap<Integer, Host>();
    for (int rank = 0; rank < hosts.size(); rank++) {
      var host = hosts.get(rank);
      if (names.values().stream().noneMatch(known -> known.id().equals(host.id()))) {
        names.put(rank, host);
      }
    }
    return names.values().stream()
        .map(
            host -> {
              var ranks =
                  IntStream.range(0, hosts.size())
                      .filter(rank -> hosts.get(rank).id().equals(host.id()))
                      .toArray();
              return "rank%s on %s"
                  .formatted(
                      ranks.length == 1
                          ? " " + ranks[0] + " is"
                          : "s " + text(Arrays.stream(ranks)) + " are",
                      host.name());
            })
        .collect(Collectors.joining(", "));
  }
}
