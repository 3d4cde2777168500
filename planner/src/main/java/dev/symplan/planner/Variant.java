package dev.symplan.planner;

import com.google.common.base.Ascii;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import java.util.Arrays;
import java.util.Optional;

/**
 * The algorithms that a collective can be rewritten to.
 *
 * <p>What a variant reads or writes on a peer must be in symmetric memory. All but {@link #LOCAL}
 * begin with a barrier of the group, so that operands are written and results free everywhere, and
 * end with one, so that nobody still reads or writes a peer's buffer.
 */
public enum Variant {
  /** A group of one rank: a copy. */
  LOCAL("no communication: the group has one rank"),
  /** Every rank reads its peers' operands directly: one kernel, each byte over the link once. */
  ONE_SHOT("each rank reads the peers' operands and finishes by itself"),
  /** Every rank reduces its slice from the peers' operands and stores it to every peer's result. */
  TWO_SHOT("each rank reduces one slice and stores it to all peers"),
  /** Every rank stores its operand to every peer's result. */
  PUSH("each rank stores its operand into the peers' results"),
  /** The switch reduces on load and replicates on store, through a multicast address. */
  MULTIMEM("the switch reduces and replicates (NVLink multicast)"),
  /** As {@link #PUSH}, by the copy engines: takes no SM, starts slowly. */
  COPY_ENGINE("the copy engines store each operand into the peers' results"),
  /** NCCL's symmetric kernels on registered windows. */
  NCCL_SYMM("NCCL's symmetric kernel on a registered window"),
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

  /** {@return whether this algorithm exists for a kind of collective} */
  public boolean implementsKind(Kind kind) {
    return switch (this) {
      case LOCAL, NCCL -> kind != Kind.CUSTOM;
      case CUSTOM -> kind == Kind.CUSTOM;
      case ONE_SHOT -> kind != Kind.CUSTOM;
      case TWO_SHOT -> kind == Kind.ALL_REDUCE;
      case PUSH -> kind == Kind.ALL_GATHER || kind == Kind.ALL_TO_ALL;
      case MULTIMEM ->
          kind == Kind.ALL_REDUCE
              || kind == Kind.ALL_GATHER
              || kind == Kind.REDUCE_SCATTER
              || kind == Kind.BROADCAST;
      case COPY_ENGINE ->
          kind == Kind.ALL_GATHER || kind == Kind.ALL_TO_ALL || kind == Kind.BROADCAST;
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
      case LOCAL, NCCL_SYMM, NCCL, CUSTOM -> false;
    };
  }

  /**
   * {@return whether the operand must be symmetric: because peers touch it, or because the library
   * asks for a window}
   */
  public boolean needsSymmetricOperand(Kind kind) {
    return this == NCCL_SYMM || (this != CUSTOM && protocol(kind).readsOf().isRemote());
  }

  /** {@return whether peers touch the result, so that it must be symmetric} */
  public boolean needsSymmetricResult(Kind kind) {
    return this != CUSTOM && protocol(kind).writesOf().isRemote();
  }

  /** {@return whether operand and result may be one buffer: each element is read before written} */
  public boolean allowsInPlace(Kind kind) {
    return kind == Kind.ALL_REDUCE
        && switch (this) {
          case TWO_SHOT, MULTIMEM, NCCL_SYMM, NCCL, LOCAL -> true;
          case ONE_SHOT, PUSH, COPY_ENGINE, CUSTOM -> false;
        };
  }
}
