package dev.symplan.codegen;

import dev.symplan.ir.TensorType;
import dev.symplan.planner.plan.ArenaKind;

/**
 * A tensor at a fixed address.
 *
 * @param index the graph input or output, for external memory; 0 for arenas; {@link #SCRATCH} for
 *     the rank's own memory beside its arenas
 * @param offset bytes from the start of the arena, input or output
 */
public record TensorRef(ArenaKind arena, int index, long offset, TensorType type) {
  /**
   * The index of the memory beside the local arena in which the steps of one op pass on values. A
   * plan does not have it: what lies there is lost when the op ends.
   */
  public static final int SCRATCH = 1;

  public TensorRef {
    if (offset < 0 || index < 0) {
      throw new IllegalArgumentException("a tensor at offset " + offset + " of " + index);
    }
  }

  /** {@return a tensor beside the local arena} */
  public static TensorRef scratch(long offset, TensorType type) {
    return new TensorRef(ArenaKind.LOCAL, SCRATCH, offset, type);
  }

  /** {@return where it ends in the memory beside the local arena; 0 if it is not there} */
  public long scratchEnd() {
    return arena == ArenaKind.LOCAL && index == SCRATCH ? offset + type.storageBytes() : 0;
  }

  /** {@return whether it shares bytes, those of gaps included, with another tensor} */
  public boolean overlaps(TensorRef other) {
    return arena == other.arena
        && index == other.index
        && offset < other.offset + other.type.storageBytes()
        && other.offset < offset + type.storageBytes();
  }

  /** {@return a tensor of another type in the same place} */
  public TensorRef with(TensorType other) {
    return new TensorRef(arena, index, offset, other);
  }

  /** {@return where it is, for example {@code symm+0x400} or {@code in3}} */
  public String address() {
    var start = Long.toHexString(offset);
    return switch (arena) {
      case SYMMETRIC -> "symm+0x" + start;
      case LOCAL -> (index == SCRATCH ? "scratch+0x" : "local+0x") + start;
      case HOST -> "host+0x" + start;
      case EXTERNAL_INPUT -> "in" + index + (offset == 0 ? "" : "+0x" + start);
      case EXTERNAL_OUTPUT -> "out" + index + (offset == 0 ? "" : "+0x" + start);
    };
  }

  /** {@return for example {@code symm+0x400:f32[8, 64]}} */
  @Override
  public String toString() {
    return address() + ":" + type;
  }
}
