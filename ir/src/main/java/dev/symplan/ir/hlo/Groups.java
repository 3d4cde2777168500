package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.op.Permutation;
import dev.symplan.ir.op.Permutation.Pair;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * The process groups of a module. A rank is a device of XLA: partition {@code p} of replica {@code
 * r} is rank {@code r * partitions + p}.
 */
final class Groups {
  /** The group of all ranks. */
  private static final String WORLD = "world";

  private final int replicas;
  private final int partitions;
  private final Map<ImmutableList<ImmutableIntArray>, ProcessGroup> groups = new LinkedHashMap<>();

  Groups(int replicas, int partitions) {
    this.replicas = replicas;
    this.partitions = partitions;
  }

  int world() {
    return replicas * partitions;
  }

  int partitions() {
    return partitions;
  }

  /** {@return the groups that were asked for} */
  ImmutableList<ProcessGroup> used() {
    return ImmutableList.copyOf(groups.values());
  }

  /**
   * {@return the group of a collective}
   *
   * @param ofPartitions whether the opcode counts partitions, not replicas, if it has a channel
   * @throws IllegalArgumentException when the groups are malformed, overlap or differ in size
   */
  ProcessGroup of(HloInstruction instruction, boolean ofPartitions) {
    var attributes = instruction.attributes();
    var written =
        attributes.text("replica_groups").map(ReplicaGroups::read).orElse(ImmutableList.of());
    boolean channel = attributes.has("channel_id");
    ImmutableList<ImmutableIntArray> ranks;
    if (written.isEmpty()
        && (channel && !ofPartitions || attributes.flag("use_global_device_ids"))) {
      ranks = ImmutableList.of(count(world(), id -> id));
    } else if (attributes.flag("use_global_device_ids")) {
      ranks = written;
    } else if (channel && ofPartitions) {
      ranks = ofPartitions(written);
    } else if (channel) {
      ranks = ofReplicasAndPartitions(written);
    } else {
      ranks = ofReplicas(written);
    }
    return groups.computeIfAbsent(ranks, this::group);
  }

  /** A group, and pairs of positions in each part of it. */
  record Pairs(ProcessGroup group, Permutation permutation) {}

  /**
   * {@return the pairs of a collective-permute} If ranks fall into parts that do not talk to each
   * other, and all parts have the same pairs, each part meets by itself; else, all ranks do.
   *
   * @throws IllegalArgumentException when the pairs are malformed or name a device twice
   */
  Pairs pairs(HloInstruction instruction) {
    var attributes = instruction.attributes();
    var written = ReplicaGroups.pairs(attributes.text("source_target_pairs").orElse(""));
    int count = attributes.has("channel_id") ? partitions : replicas;
    if (written.maxRank() >= count) {
      throw new IllegalArgumentException(
          "device %s does not exist; the pairs are of %s".formatted(written.maxRank(), count));
    }
    var pairs = new ArrayList<Pair>();
    for (int rank = 0; rank < world(); rank++) {
      int replica = rank / partitions;
      int partition = rank % partitions;
      int self = attributes.has("channel_id") ? partition : replica;
      int target = written.targetOf(self).orElse(-1);
      if (target >= 0) {
        pairs.add(
            new Pair(
                rank,
                attributes.has("channel_id")
                    ? replica * partitions + target
                    : target * partitions + partition));
      }
    }
    var all = new Permutation(ImmutableList.copyOf(pairs));
    var parts = parts(all);
    var first = within(parts.getFirst(), all);
    if (!parts.stream().allMatch(part -> within(part, all).equals(first))) {
      return new Pairs(
          groups.computeIfAbsent(ImmutableList.of(count(world(), id -> id)), this::group), all);
    }
    return new Pairs(groups.computeIfAbsent(parts, this::group), first);
  }

  /** {@return the ranks in parts that talk only among themselves, each in ascending order} */
  private ImmutableList<ImmutableIntArray> parts(Permutation all) {
    int[] leader = IntStream.range(0, world()).toArray();
    for (var pair : all.pairs()) {
      int a = leader(leader, pair.source());
      int b = leader(leader, pair.target());
      leader[Math.max(a, b)] = Math.min(a, b);
    }
    return IntStream.range(0, world())
        .filter(rank -> leader[rank] == rank)
        .mapToObj(
            first ->
                ImmutableIntArray.copyOf(
                    IntStream.range(first, world()).filter(rank -> leader(leader, rank) == first)))
        .collect(ImmutableList.toImmutableList());
  }

  private static int leader(int[] leader, int rank) {
    int at = rank;
    while (leader[at] != at) {
      at = leader[at];
    }
    return at;
  }

  /** {@return the pairs of a part, by positions in it, in order; those of a smaller one differ} */
  private static Permutation within(ImmutableIntArray part, Permutation all) {
    var pairs = ImmutableList.<Pair>builder();
    for (int i = 0; i < part.length(); i++) {
      int source = i;
      all.targetOf(part.get(i))
          .ifPresent(target -> pairs.add(new Pair(source, part.indexOf(target))));
    }
    return new Permutation(pairs.build());
  }

  private ProcessGroup group(ImmutableList<ImmutableIntArray> ranks) {
    for (var part : ranks) {
      for (int rank : part.asList()) {
        if (rank >= world()) {
          throw new IllegalArgumentException(
              "device %s does not exist; the module is for %s".formatted(rank, world()));
        }
      }
    }
    boolean all = ranks.size() == 1 && ranks.getFirst().length() == world();
    return new ProcessGroup(all ? WORLD + suffix() : "group" + groups.size(), ranks);
  }

  /** Groups of all ranks may have them in several orders. */
  private String suffix() {
    long others = groups.values().stream().filter(group -> group.size() == world()).count();
    return others == 0 ? "" : "_" + (others + 1);
  }

  /** Each group once for each partition, as only replicas talk. */
  private ImmutableList<ImmutableIntArray> ofReplicas(List<ImmutableIntArray> written) {
    var named = written.isEmpty() ? List.of(count(replicas, id -> id)) : written;
    return IntStream.range(0, partitions)
        .boxed()
        .flatMap(
            partition ->
                named.stream().map(ids -> map(ids, replica -> replica * partitions + partition)))
        .collect(ImmutableList.toImmutableList());
  }

  private ImmutableList<ImmutableIntArray> ofPartitions(List<ImmutableIntArray> written) {
    var named = written.isEmpty() ? List.of(count(partitions, id -> id)) : written;
    return IntStream.range(0, replicas)
        .boxed()
        .flatMap(
            replica ->
                named.stream().map(ids -> map(ids, partition -> replica * partitions + partition)))
        .collect(ImmutableList.toImmutableList());
  }

  /** All partitions of all replicas of a group. */
  private ImmutableList<ImmutableIntArray> ofReplicasAndPartitions(
      List<ImmutableIntArray> written) {
    return written.stream()
        .map(
            ids ->
                ImmutableIntArray.copyOf(
                    ids.stream()
                        .flatMap(
                            replica ->
                                IntStream.range(0, partitions)
                                    .map(partition -> replica * partitions + partition))))
        .collect(ImmutableList.toImmutableList());
  }

  private static ImmutableIntArray count(int size, java.util.function.IntUnaryOperator id) {
    return ImmutableIntArray.copyOf(IntStream.range(0, size).map(id));
  }

  private static ImmutableIntArray map(
      ImmutableIntArray ids, java.util.function.IntUnaryOperator change) {
    return ImmutableIntArray.copyOf(ids.stream().map(change));
  }
}
