package dev.symplan.planner.machine;

import dev.symplan.ir.op.CollectiveSpec.Kind;

/** The kernels and copies of which a collective of several tensors consists. */
public final class Launches {

  /**
   * The words of 8 bytes that one kernel takes for all its tensors: its arguments fill 4 KB at
   * most.
   */
  public static final int MAX_WORDS = 400;

  /**
   * The tensors that one kernel takes for elementwise ops and the collective behind them: with
   * more, the threads of a block need more registers than there are.
   */
  public static final int MAX_JOINED = 8;

  /**
   * The ranks of a reduce_scatter that is one kernel with the ops before it: of what these make,
   * only a rank's own slice is computed beside the transfer.
   */
  public static final int MAX_RANKS_OF_SCATTER = 4;

  private Launches() {}

  /**
   * {@return the words that a kernel takes for each tensor: its addresses, and two counts}
   *
   * @param sources the addresses that it reads
   * @param targets the addresses that it writes
   */
  public static int words(int sources, int targets) {
    return sources + targets + 2;
  }

  /**
   * {@return the launches of a collective of so many tensors, beyond those of one tensor}
   *
   * <p>A library takes all tensors in one call. The copy engines copy each tensor to each rank.
   */
  public static int further(VariantSpec spec, int tensors, int ranks) {
    return switch (spec.variant()) {
      case NCCL, NCCL_SYMM, NCCL_CE, CUSTOM -> 0;
      case COPY_ENGINE -> (tensors - 1) * ranks;
      case LOCAL, ONE_SHOT_PUSH, TWO_SHOT_PUSH, MULTIMEM, MULTIMEM_ONE_SHOT -> tensors - 1;
      case ONE_SHOT, TWO_SHOT, PUSH -> Math.ceilDiv(tensors, together(spec, ranks)) - 1;
    };
  }

  /** Of the tensors of a collective, one kernel takes so many. */
  private static int together(VariantSpec spec, int ranks) {
    var protocol = spec.protocol();
    boolean reduces = spec.kind().reduces();
    boolean toAll = protocol.writesOf() == Protocol.Whose.EVERY;
    // Each rank moves one piece: what it combines, or what it sends to all.
    boolean onePiece =
        reduces
            || (toAll
                && protocol.reads() != Protocol.Slice.THEIRS
                && spec.kind() != Kind.COLLECTIVE_PERMUTE);
    return onePiece ? MAX_WORDS / words(reduces ? ranks : 1, toAll ? ranks : 1) : 1;
  }
}
