package dev.symplan.planner.machine;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.op.CollectiveSpec.Kind;

/**
 * Who touches what of whom between the two barriers of a collective: each acting rank reads
 * operands, and writes results, of its own or of its peers.
 *
 * <p>What of this is a peer's must be in symmetric memory, and is what barriers protect. Models of
 * the variants are generated from here and checked exhaustively.
 *
 * @param rootOnly whether the root alone acts
 * @param readsOf whose operands an acting rank reads
 * @param reads which part of each
 * @param writesOf whose results it writes
 * @param writes which part of each
 * @param pushes what each rank stores into the {@link Workspace} of each peer, one round after the
 *     other: a part of its operand at first, then of what it made of the round before. Where there
 *     is any, peers touch nothing else
 */
public record Protocol(
    boolean rootOnly,
    Whose readsOf,
    Part reads,
    Whose writesOf,
    Part writes,
    ImmutableList<Part> pushes) {

  /** Whose memory. */
  public enum Whose {
    /** The acting rank's own. */
    OWN,
    /** That of each rank of the group, the acting one included. */
    EVERY,
    /** The root's, be it the acting rank or not. */
    ROOT;

    /** {@return whether a peer's is among it} */
    boolean isRemote() {
      return this != OWN;
    }
  }

  /** Which part of a tensor that has one slice for each rank of the group. */
  public enum Part {
    /** All of it. */
    WHOLE,
    /** The slice with the acting rank's number. */
    MINE,
    /** The slice with the number of the rank at the other end of the transfer. */
    THEIRS
  }

  public Protocol {
    if (!pushes.isEmpty() && (readsOf.isRemote() || writesOf.isRemote())) {
      throw new IllegalArgumentException("what goes through a workspace touches no peer's tensor");
    }
  }

  private Protocol(boolean rootOnly, Whose readsOf, Part reads, Whose writesOf, Part writes) {
    this(rootOnly, readsOf, reads, writesOf, writes, ImmutableList.of());
  }

  /** A copy, which no peer sees. */
  private static final Protocol LOCAL =
      new Protocol(false, Whose.OWN, Part.WHOLE, Whose.OWN, Part.WHOLE);

  /** A custom op may touch all that it has registered, everywhere. */
  private static final Protocol ANY =
      new Protocol(false, Whose.EVERY, Part.WHOLE, Whose.EVERY, Part.WHOLE);

  /** {@return what a variant does for a kind that it implements} */
  static Protocol of(Variant variant, Kind kind) {
    return switch (variant) {
      // Plain NCCL moves data through its own buffers: to peers, the tensors are local.
      case LOCAL, NCCL -> LOCAL;
      case CUSTOM -> ANY;
      case ONE_SHOT -> pull(kind);
      case ONE_SHOT_PUSH -> pushing(Part.WHOLE);
      case TWO_SHOT ->
          kind == Kind.BROADCAST
              ? new Protocol(false, Whose.ROOT, Part.MINE, Whose.EVERY, Part.MINE)
              : slices();
      // To the rank that reduces a slice, and from there to all.
      case TWO_SHOT_PUSH -> pushing(Part.THEIRS, Part.MINE);
      case PUSH, COPY_ENGINE, NCCL_CE -> push(kind);
      case MULTIMEM, NCCL_SYMM ->
          switch (kind) {
            case ALL_REDUCE -> slices();
            case REDUCE_SCATTER -> pull(kind);
            case ALL_GATHER, ALL_TO_ALL, BROADCAST, CUSTOM -> push(kind);
          };
    };
  }

  private static Protocol pushing(Part... pushes) {
    return new Protocol(
        false, Whose.OWN, Part.WHOLE, Whose.OWN, Part.WHOLE, ImmutableList.copyOf(pushes));
  }

  private static Protocol pull(Kind kind) {
    return switch (kind) {
      case ALL_REDUCE -> new Protocol(false, Whose.EVERY, Part.WHOLE, Whose.OWN, Part.WHOLE);
      case ALL_GATHER -> new Protocol(false, Whose.EVERY, Part.WHOLE, Whose.OWN, Part.THEIRS);
      case REDUCE_SCATTER -> new Protocol(false, Whose.EVERY, Part.MINE, Whose.OWN, Part.WHOLE);
      case ALL_TO_ALL -> new Protocol(false, Whose.EVERY, Part.MINE, Whose.OWN, Part.THEIRS);
      case BROADCAST -> new Protocol(false, Whose.ROOT, Part.WHOLE, Whose.OWN, Part.WHOLE);
      case CUSTOM -> ANY;
    };
  }

  private static Protocol push(Kind kind) {
    return switch (kind) {
      case ALL_GATHER -> new Protocol(false, Whose.OWN, Part.WHOLE, Whose.EVERY, Part.MINE);
      case ALL_TO_ALL -> new Protocol(false, Whose.OWN, Part.THEIRS, Whose.EVERY, Part.MINE);
      case BROADCAST -> new Protocol(true, Whose.OWN, Part.WHOLE, Whose.EVERY, Part.WHOLE);
      case ALL_REDUCE, REDUCE_SCATTER, CUSTOM -> ANY;
    };
  }

  /** Each rank reduces one slice of all operands, and stores it to all results. */
  private static Protocol slices() {
    return new Protocol(false, Whose.EVERY, Part.MINE, Whose.EVERY, Part.MINE);
  }
}
