package dev.symplan.planner.machine;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import java.util.Arrays;
import java.util.Optional;

/**
 * The algorithms that a collective can be rewritten to.
 *
 * <p>What a variant reads or writes on a peer must be in symmetric memory. Most begin with a
 * barrier of the group, so that operands are written and results free everywhere, and end with one,
 * so that nobody still reads or writes a peer's buffer. Those that go through a {@link Workspace}
 * need none.
 */
public enum Variant {
  /** A group of one rank: a copy. */
  LOCAL("no communication: the group has one rank"),
  /** Every rank reads its peers' operands directly: one kernel, each byte over the link once. */
  ONE_SHOT("each rank reads the peers' operands and computes its result alone"),
  /**
   * Every rank stores its operand into every peer's workspace, and reduces what it finds in its
   * own: no barrier, one way over the link.
   */
  ONE_SHOT_PUSH("each rank stores its operand into the peers' workspaces, without a barrier"),
  /**
   * Every rank reduces its slice from the peers' operands and stores it to every peer's result. In
   * a broadcast, each but the root takes its slice from there.
   */
  TWO_SHOT("each rank handles one slice and stores it to all peers"),
  /** As {@link #TWO_SHOT}, but operands and results pass through the peers' workspaces. */
  TWO_SHOT_PUSH("each rank reduces one slice, through workspaces, without a barrier"),
  /** Every rank stores its operand to every peer's result. */
  PUSH("each rank stores its operand into the peers' results"),
  /** The switch reduces on load and replicates on store, through a multicast address. */
  MULTIMEM("the switch reduces and replicates (NVLink multicast)"),
  /** As {@link #PUSH}, by the copy engines: takes no SM, starts slowly. */
  COPY_ENGINE("the copy engines store each operand into the peers' results"),
  /** NCCL's symmetric kernels on registered windows. */
  NCCL_SYMM("NCCL's symmetric kernel on a registered window"),
  /** As {@link #COPY_ENGINE}, by NCCL: a communicator of the CTA policy zero. */
  NCCL_CE("NCCL copies between registered windows on the copy engines"),
  /** Plain NCCL: no demand on memory. */
  NCCL("plain NCCL, through its own buffers"),
  /** A custom op's own implementation. */
  CUSTOM("the op's own implementation");

  private final String summary;

  Variant(String summary) {
    this.summary = summary;
  }

  /** {@return the name in plans and options, for example {@code one_shot}} */
  public String text() {
    return Ascii.toLowerCase(name());
  }

  /** {@return one line for people} */
  public String summary() {
    return summary;
  }

  public static Optional<Variant> ofText(String text) {
    return Arrays.stream(values()).filter(v -> v.text().equals(text)).findFirst();
  }

  /** {@return the algorithms between several ranks that exist for a kind of collective} */
  public static ImmutableList<Variant> ofKind(Kind kind) {
    return Arrays.stream(values())
        .filter(variant -> variant != LOCAL && variant.implementsKind(kind))
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return whether this algorithm exists for a kind of collective} */
  public boolean implementsKind(Kind kind) {
    return switch (this) {
      case LOCAL, NCCL -> kind != Kind.CUSTOM;
      case CUSTOM -> kind == Kind.CUSTOM;
      case ONE_SHOT -> kind != Kind.CUSTOM;
      case ONE_SHOT_PUSH, TWO_SHOT_PUSH -> kind == Kind.ALL_REDUCE;
      case TWO_SHOT -> kind == Kind.ALL_REDUCE || kind == Kind.BROADCAST;
      case PUSH -> kind == Kind.ALL_GATHER || kind == Kind.ALL_TO_ALL;
      case MULTIMEM ->
          kind == Kind.ALL_REDUCE
              || kind == Kind.ALL_GATHER
              || kind == Kind.REDUCE_SCATTER
              || kind == Kind.BROADCAST;
      case COPY_ENGINE ->
          kind == Kind.ALL_GATHER || kind == Kind.ALL_TO_ALL || kind == Kind.BROADCAST;
      case NCCL_CE -> kind == Kind.ALL_GATHER || kind == Kind.ALL_TO_ALL;
      case NCCL_SYMM ->
          kind == Kind.ALL_REDUCE || kind == Kind.ALL_GATHER || kind == Kind.REDUCE_SCATTER;
    };
  }

  /** {@return who touches what of whom, for a kind that it implements} */
  public Protocol protocol(Kind kind) {
    return Protocol.of(this, kind);
  }

  /**
   * {@return whether its barriers are the plan's, so that they can be left out, and stand in for
   * others; NCCL and custom ops meet in ways of their own, which promise nothing to others}
   */
  public boolean hasPlannedBarriers() {
    return switch (this) {
      case ONE_SHOT, TWO_SHOT, PUSH, MULTIMEM, COPY_ENGINE -> true;
      case LOCAL, ONE_SHOT_PUSH, TWO_SHOT_PUSH, NCCL_SYMM, NCCL_CE, NCCL, CUSTOM -> false;
    };
  }

  /**
   * {@return whether ranks send to each other through a {@link Workspace}, where what they send
   * says by itself that it is there: so there are no barriers at all}
   */
  public boolean needsWorkspace() {
    return this == ONE_SHOT_PUSH || this == TWO_SHOT_PUSH;
  }

  /** {@return whether the copy engines do it, and the multiprocessors are left to compute} */
  public boolean usesCopyEngines() {
    return this == COPY_ENGINE || this == NCCL_CE;
  }

  /**
   * {@return whether the operand must be symmetric: because peers touch it, or because the library
   * asks for a window}
   */
  public boolean needsSymmetricOperand(Kind kind) {
    return this == NCCL_SYMM
        || this == NCCL_CE
        || (this != CUSTOM && protocol(kind).readsOf().isRemote());
  }

  /** {@return whether peers touch the result, so that it must be symmetric} */
  public boolean needsSymmetricResult(Kind kind) {
    return this != CUSTOM && protocol(kind).writesOf().isRemote();
  }

  /**
   * {@return whether what a rank brings to an all_gather may lie in its part of the result, and
   * what it gets from a reduce_scatter in its part of the operand: no peer touches it there, nor
   * does the library ask for the same offset everywhere}
   */
  public boolean allowsShareInWhole(Kind kind) {
    return switch (kind) {
      case ALL_GATHER -> this == PUSH || this == COPY_ENGINE || this == NCCL;
      case REDUCE_SCATTER -> this == ONE_SHOT || this == NCCL;
      case ALL_REDUCE, ALL_TO_ALL, BROADCAST, CUSTOM -> false;
    };
  }

  /** {@return whether operand and result may be one buffer: each element is read before written} */
  public boolean allowsInPlace(Kind kind) {
    return kind == Kind.ALL_REDUCE
        && switch (this) {
          case TWO_SHOT, ONE_SHOT_PUSH, TWO_SHOT_PUSH, MULTIMEM, NCCL_SYMM, NCCL, LOCAL -> true;
          case ONE_SHOT, PUSH, COPY_ENGINE, NCCL_CE, CUSTOM -> false;
        };
  }
}
