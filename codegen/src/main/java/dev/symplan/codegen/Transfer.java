package dev.symplan.codegen;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Transfer.Endpoint;
import dev.symplan.codegen.Transfer.Slot;

/**
 * One thing that a rank does for one tensor of a collective. A rank does them one after the other;
 * {@link Transfers} says which.
 *
 * <p>Ranks are named by their positions in the group.
 */
public sealed interface Transfer {

  /** Where bytes come from, or go to. */
  sealed interface Endpoint {}

  /** Which tensor of a rank. */
  enum Role {
    OPERAND,
    RESULT,
    /** A buffer of the library's, as large as the operand. */
    LIBRARY
  }

  /**
   * Some bytes of a tensor.
   *
   * @param offset in bytes
   */
  record InTensor(Role role, int member, long offset) implements Endpoint {}

  /** Where the receiver's workspace has what the sender sends in a round. */
  record Slot(int round, int receiver, int sender) implements Endpoint {}

  /** Waits until all ranks of the group are here. */
  record Barrier() implements Transfer {}

  /** Copies bytes to one end or to several. */
  record Copy(Endpoint from, ImmutableList<Endpoint> to, long bytes) implements Transfer {}

  /** Combines the elements of as many bytes from each rank, in the order of the ranks. */
  record Reduce(ImmutableList<Endpoint> from, ImmutableList<Endpoint> to, long bytes)
      implements Transfer {}

  /** Waits until peers have filled these slots of the rank's own workspace. */
  record Receive(ImmutableList<Slot> slots) implements Transfer {}

  /** Says that these slots of the rank's own workspace are free, before the next collective. */
  record Empty(ImmutableList<Slot> slots) implements Transfer {}
}
