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
   * The layout of numbered bytes in memory: rows, whose distances repeat.
   *
   * @param loops from the innermost on: every so many bytes, memory goes on at a distance. The
   *     first ones are the bytes of a row
   * @param skipped the bytes of the first row that come before the first numbered one
   */
  record Rows(ImmutableList<Loop> loops, long skipped) {

    /**
     * Every so many bytes.
     *
     * @param bytes that many
     * @param pitch bytes in memory from where these begin to where the next ones do
     */
    public record Loop(long bytes, long pitch) {
      public Loop {
        if (bytes < 1 || pitch < 1) {
          throw new IllegalArgumentException("%s bytes, %s apart".formatted(bytes, pitch));
        }
      }
    }

    /** All bytes are one row. */
    public static final Rows ONE = even(Long.MAX_VALUE, Long.MAX_VALUE);

    public Rows {
      // Rows in another order than in memory have no first byte in memory but that of the first.
      if (loops.isEmpty()
          || skipped < 0
          || skipped >= (loops.size() > 1 ? 1 : loops.getFirst().bytes())) {
        throw new IllegalArgumentException("rows %s, from %s on".formatted(loops, skipped));
      }
    }

    /** {@return whole rows at one distance} */
    public static Rows even(long bytes, long pitch) {
      if (pitch < bytes) {
        throw new IllegalArgumentException("rows of %s bytes, %s apart".formatted(bytes, pitch));
      }
      return new Rows(ImmutableList.of(new Loop(bytes, pitch)), 0);
    }

    /** {@return the bytes of a row} */
    public long bytes() {
      return loops.getFirst().bytes();
    }

    /**
     * {@return bytes from the beginning of one row to that of the next}
     *
     * @throws IllegalStateException when that is not the same for all
     */
    public long pitch() {
      if (loops.size() > 1) {
        throw new IllegalStateException(loops + " are at several distances");
      }
      return loops.getFirst().pitch();
    }

    /** {@return the layout of the bytes from one on} */
    public Rows from(long index) {
      return new Rows(loops, (skipped + index) % loops.getLast().bytes());
    }

    /** {@return how far a byte lies from the first one} */
    public long offset(long index) {
      return place(skipped + index) - skipped;
    }

    private long place(long index) {
      long place = index % bytes();
      for (int i = 0; i < loops.size(); i++) {
        long round = index / loops.get(i).bytes();
        place += (i + 1 < loops.size() ? round % rounds(i) : round) * loops.get(i).pitch();
      }
      return place;
    }

    /** {@return how often a loop goes round in one round of the next} */
    public long rounds(int loop) {
      return loops.get(loop + 1).bytes() / loops.get(loop).bytes();
    }

    /** {@return how many bytes of a row there are from one on} */
    public long left(long index) {
      return bytes() - (skipped + index) % bytes();
    }

    /** {@return from the first of so many bytes to the end of the last one in memory} */
    public long extent(long count) {
      return count == 0 ? 0 : last(skipped, skipped + count, loops.size()) - skipped + 1;
    }

    /** {@return the last place in memory of some bytes, by those loops} */
    private long last(long from, long to, int depth) {
      if (depth == 0) {
        return to - 1;
      }
      var loop = loops.get(depth - 1);
      long first = from / loop.bytes();
      long end = (to - 1) / loop.bytes();
      long ended = last(first == end ? from % loop.bytes() : 0, to - end * loop.bytes(), depth - 1);
      return first == end
          ? end * loop.pitch() + ended
          : Math.max(
              end * loop.pitch() + ended,
              (end - 1) * loop.pitch()
                  + last(end - 1 == first ? from % loop.bytes() : 0, loop.bytes(), depth - 1));
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
