package dev.symplan.codegen;

import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.plan.ArenaKind;

/**
 * A location in some rank's memory.
 *
 * @param index the graph input or output, for external memory; 0 for arenas; {@link
 *     TensorRef#SCRATCH} for memory beside them
 * @param offset in bytes
 */
public record Address(int rank, ArenaKind arena, int index, long offset) {

  public static Address of(int rank, TensorRef ref) {
    return new Address(rank, ref.arena(), ref.index(), ref.offset());
  }

  /** {@return a place in the memory beside the local arena} */
  public static Address scratch(int rank, long offset) {
    return new Address(rank, ArenaKind.LOCAL, TensorRef.SCRATCH, offset);
  }

  /** {@return whether it is in the memory beside the local arena} */
  public boolean isScratch() {
    return arena == ArenaKind.LOCAL && index == TensorRef.SCRATCH;
  }

  public Address plus(long bytes) {
    return new Address(rank, arena, index, offset + bytes);
  }

  /** {@return whether 16 bytes can be moved at once from here: memory itself is aligned to more} */
  public boolean isVectorAligned() {
    return offset % Alignment.VECTOR == 0;
  }
}
