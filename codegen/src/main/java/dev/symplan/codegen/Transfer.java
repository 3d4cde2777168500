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

  /** The source or target of bytes. */
  sealed interface Endpoint {}

  /** The tensor of a rank. */
  enum Role {
    OPERAND,
    RESULT,
    /** A buffer of the library's, as large as the operand. */
    LIBRARY
  }

  /**
   * Some bytes of a tensor.
   *
   * @param offset of the first one
   */
  record InTensor(Role role, int member, long offset, Rows rows) implements Endpoint {}

  /**
   * The layout of numbered bytes in memory: rows at equal distances.
   *
   * @param bytes of a row
   * @param pitch bytes from the beginning of one row to that of the next
   * @param skipped the bytes of the first row that come before the first numbered one
   */
  record Rows(long bytes, long pitch, long skipped) {
    /** All bytes are one row. */
    public static final Rows ONE = new Rows(Long.MAX_VALUE, Long.MAX_VALUE);

    public Rows {
      if (bytes < 1 || pitch < bytes || skipped < 0 || skipped >= bytes) {
        throw new IllegalArgumentException(
            "rows of %s bytes, %s apart, from %s on".formatted(bytes, pitch, skipped));
      }
    }

    /** Whole rows. */
    public Rows(long bytes, long pitch) {
      this(bytes, pitch, 0);
    }

    /** {@return the layout of the bytes from one on} */
    public Rows from(long index) {
      return new Rows(bytes, pitch, (skipped + index) % bytes);
    }

    /** {@return how far a byte lies from the first one} */
    public long offset(long index) {
      return (skipped + index) / bytes * pitch + (skipped + index) % bytes - skipped;
    }

    /** {@return how many bytes of a row there are from one on} */
    public long left(long index) {
      return bytes - (skipped + index) % bytes;
    }

    /** {@return from the first of so many bytes to the end of the last one} */
    public long extent(long count) {
      return count == 0 ? 0 : offset(count - 1) + 1;
    }
  }

  /** Where the receiver's workspace has what the sender sends in a round. */
  record Slot(int round, int receiver, int sender) implements Endpoint {}

  /** Waits until all ranks of the group are here. */
  record Barrier() implements Transfer {}

  /** Copies bytes to one end or to several. */
  record Copy(Endpoint from, ImmutableList<Endpoint> to, long bytes) implements Transfer {}

  /** Fills bytes with zeros. */
  record Clear(Endpoint to, long bytes) implements Transfer {}

  /** Combines the elements of as many bytes from each rank, in the order of the ranks. */
  record Reduce(ImmutableList<Endpoint> from, ImmutableList<Endpoint> to, long bytes)
      implements Transfer {}

  /** Waits until peers have filled these slots of the rank's own workspace. */
  record Receive(ImmutableList<Slot> slots) implements Transfer {}

  /** Says that these slots of the rank's own workspace are free, before the next collective. */
  record Empty(ImmutableList<Slot> slots) implements Transfer {}
}
