package dev.symplan.codegen;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Transfer.Place;
import dev.symplan.codegen.Transfer.Slot;

/**
 * One thing that a rank does for one tensor of a collective. A rank does them one after the other;
 * {@link Transfers} says which.
 *
 * <p>Ranks are named by their positions in the group.
 */
public sealed interface Transfer {

  /** Where bytes are. */
  sealed interface Place {}

  /** Which tensor of a rank. */
  enum Role {
    OPERAND,
    RESULT,
    /** A buffer of the library's, as large as the operand. */
    LIBRARY
  }

  /**
   * A place in a tensor.
   *
   * @param offset in bytes
   */
  record Part(Role role, int member, long offset) implements Place {}

  /** Where the receiver's workspace has what the sender sends in a round. */
  record Slot(int round, int receiver, int sender) implements Place {}

  /** Waits until all ranks of the group are here. */
  record Barrier() implements Transfer {}

  /** Copies bytes to one place or to several. */
  record Copy(Place from, ImmutableList<Place> to, long bytes) implements Transfer {}

  /** Combines the elements of as many bytes from each rank, in the order of the ranks. */
  record Reduce(ImmutableList<Place> from, ImmutableList<Place> to, long bytes)
      implements Transfer {}

  /** Waits until peers have filled these slots of the rank's own workspace. */
  record Receive(ImmutableList<Slot> slots) implements Transfer {}

  /** Says that these slots of the rank's own workspace are free, before the next collective. */
  record Empty(ImmutableList<Slot> slots) implements Transfer {}
}
