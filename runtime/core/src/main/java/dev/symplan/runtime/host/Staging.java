package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableSortedMap;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Transfers;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.StreamKind;
import java.util.Comparator;
import java.util.stream.Stream;

/**
 * The staged operands of {@link Variant#NCCL} collectives: each rank has a buffer for each stream.
 * One is enough, as the collectives of a stream come one after the other, with a barrier at each
 * end.
 */
final class Staging {

  /** The alignment of staged tensors, in bytes. */
  private static final long ALIGNMENT = 128;

  private Staging() {}

  /** {@return the bytes of each buffer of a rank} */
  static ImmutableSortedMap<StreamKind, Long> sizes(Transfers transfers, int rank) {
    return of(transfers, rank)
        .collect(
            ImmutableSortedMap.toImmutableSortedMap(
                Comparator.naturalOrder(), Collective::stream, Staging::bytes, Math::max));
  }

  /**
   * {@return the bytes for what a peer stages in the collectives that a rank runs on one of its own
   * streams} The peer may run the same collectives on other streams.
   */
  static long bytes(Transfers transfers, int rank, StreamKind stream, int peer) {
    return of(transfers, rank)
        .filter(collective -> collective.stream() == stream)
        .filter(collective -> collective.group().members().contains(peer))
        .map(collective -> transfers.at(collective.group().members().indexOf(peer), collective))
        .mapToLong(Staging::bytes)
        .max()
        .orElse(0);
  }

  private static Stream<Collective> of(Transfers transfers, int rank) {
    return transfers.ofRank(rank).stream()
        .filter(collective -> collective.variant() == Variant.NCCL);
  }

  private static long bytes(Collective collective) {
    return begin(collective, collective.operands().size());
  }

  /** {@return where a tensor begins among the staged operands of a collective} */
  static long begin(Collective collective, int tensor) {
    return collective.operands().stream()
        .limit(tensor)
        .mapToLong(ref -> Math.ceilDiv(ref.type().storageBytes(), ALIGNMENT) * ALIGNMENT)
        .sum();
  }

  static long bytes(Collective collective, int tensor) {
    return collective.operands().get(tensor).type().storageBytes();
  }
}
