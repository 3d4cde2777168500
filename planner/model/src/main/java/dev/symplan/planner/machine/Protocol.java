package dev.symplan.planner.machine;

import com.google.common.collect.ImmutableList;

/**
 * The accesses of ranks between the two barriers of a collective: each acting rank reads operands,
 * and writes results, of its own or of its peers.
 *
 * <p>Memory of peers that it accesses must be symmetric, and is protected by the barriers. {@code
 * codegen} derives each rank's transfers from it.
 *
 * @param rootOnly whether the root alone acts
 * @param readsOf whose operands an acting rank reads
 * @param reads which part of each
 * @param writesOf whose results it writes
 * @param writes which part of each
 * @param pushes the data that each rank stores into the {@link Workspace} of each peer, one round
 *     after the other: a part of its operand at first, then of what it made of the round before.
 *     Where there is any, peers touch nothing else
 */
public record Protocol(
    boolean rootOnly,
    Whose readsOf,
    Slice reads,
    Whose writesOf,
    Slice writes,
    ImmutableList<Slice> pushes) {

  /** Whose memory. */
  public enum Whose {
    /** The acting rank's own. */
    OWN,
    /** That of each rank of the group, the acting one included. */
    EVERY,
    /** The root's, be it the acting rank or not. */
    ROOT,
    /** That of the rank that sends to the acting one, if one does. */
    SOURCE,
    /** That of the rank that the acting one sends to, if it sends to one. */
    TARGET;

    /** {@return whether a peer's is among it} */
    boolean isRemote() {
      return this != OWN;
    }
  }

  /** The part of a tensor, which has one slice for each rank of the group. */
  public enum Slice {
    /** All of it. */
    WHOLE,
    /** The slice with the acting rank's number. */
    MINE,
    /** The slice with the number of the rank at the other end of the transfer. */
    THEIRS
  }

  /**
   * To peers, the tensors are local: a copy, a library that moves data through its own buffers, or
   * ranks that send through workspaces.
   */
  static final Protocol LOCAL = of(Whose.OWN, Slice.WHOLE, Whose.OWN, Slice.WHOLE);

  /** A custom op may touch all that it has registered, everywhere. */
  static final Protocol ANY = of(Whose.EVERY, Slice.WHOLE, Whose.EVERY, Slice.WHOLE);

  /** Each rank reduces one slice of all operands, and stores it to all results. */
  static final Protocol SLICES = of(Whose.EVERY, Slice.MINE, Whose.EVERY, Slice.MINE);

  /** Each rank reads the root's operand. */
  static final Protocol ROOT_PULL = of(Whose.ROOT, Slice.WHOLE, Whose.OWN, Slice.WHOLE);

  /** Each rank but the root reads a slice of the root's operand, and stores it to all results. */
  static final Protocol ROOT_RELAY = of(Whose.ROOT, Slice.MINE, Whose.EVERY, Slice.MINE);

  /** The root stores its operand to every result. */
  static final Protocol ROOT_PUSH =
      new Protocol(true, Whose.OWN, Slice.WHOLE, Whose.EVERY, Slice.WHOLE, ImmutableList.of());

  /** Each rank reads the operand of the rank that sends to it. */
  static final Protocol SOURCE_PULL = of(Whose.SOURCE, Slice.WHOLE, Whose.OWN, Slice.WHOLE);

  /** Each rank stores its operand to the result of the rank that it sends to. */
  static final Protocol TARGET_PUSH = of(Whose.OWN, Slice.WHOLE, Whose.TARGET, Slice.WHOLE);

  public Protocol {
    if (!pushes.isEmpty() && (readsOf.isRemote() || writesOf.isRemote())) {
      throw new IllegalArgumentException(
          "a protocol with a workspace must not touch peers' tensors");
    }
  }

  private static Protocol of(Whose readsOf, Slice reads, Whose writesOf, Slice writes) {
    return new Protocol(false, readsOf, reads, writesOf, writes, ImmutableList.of());
  }

  /** {@return each rank reads a part of every operand and writes into its own result} */
  static Protocol pull(Slice reads, Slice writes) {
    return of(Whose.EVERY, reads, Whose.OWN, writes);
  }

  /** {@return each rank writes a part of its operand into every result} */
  static Protocol push(Slice reads, Slice writes) {
    return of(Whose.OWN, reads, Whose.EVERY, writes);
  }

  /** {@return each rank stores these parts into the peers' workspaces, round by round} */
  static Protocol rounds(Slice... pushes) {
    return new Protocol(
        false, Whose.OWN, Slice.WHOLE, Whose.OWN, Slice.WHOLE, ImmutableList.copyOf(pushes));
  }
}
