package dev.symplan.codegen;

import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.plan.ArenaKind;

/**
 * A location in some rank's memory.
 *
 * @param index the graph input or output, for external memory; 0 for arenas
 * @param offset in bytes
 */
public record Address(int rank, ArenaKind arena, int index, long offset) {

  public static Address of(int rank, TensorRef ref) {
    return new Address(rank, ref.arena(), ref.index(), ref.offset());
  }

  public Address plus(long bytes) {
    return new Address(rank, arena, index, offset + bytes);
  }

  /** {@return whether 16 bytes can be moved at once from here: memory itself is aligned to more} */
  public boolean isVectorAligned() {
    return offset % Alignment.VECTOR == 0;
  }
}
