package dev.symplan.runtime.host;

import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.diag.Units;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The memory of one rank: two arenas, a third that stands for the host's memory of GPUs, and the
 * caller's inputs and outputs.
 */
final class HostMemory {

  /**
   * Fresh memory is filled with this value, so that reads of unwritten memory show: NaN in every
   * float type, and a large number in integers.
   */
  static final short POISON = 0x7FFB;

  private static final long ALIGNMENT = 4096;

  private final RankProgram program;
  private final MemorySegment symmetric;
  private final MemorySegment local;
  private final MemorySegment host;
  private final Arena owner;
  private final @Nullable MemorySegment[] inputs;
  private final @Nullable MemorySegment[] outputs;

  /**
   * @param symmetric the symmetric arena
   * @param owner the source of all other memory; external inputs and outputs take from it only when
   *     they are used before the caller binds memory of its own
   */
  HostMemory(RankProgram program, MemorySegment symmetric, Arena owner) {
    this.program = program;
    this.owner = owner;
    this.symmetric = symmetric;
    this.local = allocate(owner, program.localBytes());
    this.host = allocate(owner, program.hostBytes());
    this.inputs = new @Nullable MemorySegment[program.inputs().size()];
    this.outputs = new @Nullable MemorySegment[program.outputs().size()];
  }

  /**
   * {@return poisoned memory}
   *
   * @throws RunException when there is not so much
   */
  static MemorySegment allocate(Arena owner, long bytes) {
    try {
      long rounded = Math.max(ALIGNMENT, Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT);
      var memory = owner.allocate(rounded, ALIGNMENT);
      poison(memory);
      return memory.asSlice(0, bytes);
    } catch (OutOfMemoryError e) {
      throw new RunException(
          "no memory for an arena of %s".formatted(Units.count(bytes, "byte")), e);
    }
  }

  /** Fills fresh memory. */
  static void poison(MemorySegment memory) {
    long bytes = memory.byteSize();
    long filled = Math.min(bytes, ALIGNMENT);
    for (long i = 0; i + Short.BYTES <= filled; i += Short.BYTES) {
      memory.set(Elements.SHORT, i, POISON);
    }
    for (; filled < bytes; filled *= 2) {
      MemorySegment.copy(memory, 0, memory, filled, Math.min(filled, bytes - filled));
    }
  }

  /** {@return whether the input is elsewhere now} */
  boolean bindInput(int index, MemorySegment memory) {
    return bind(inputs, index, memory);
  }

  /** {@return whether the output is elsewhere now} */
  boolean bindOutput(int index, MemorySegment memory) {
    return bind(outputs, index, memory);
  }

  private static boolean bind(@Nullable MemorySegment[] bound, int index, MemorySegment memory) {
    boolean moved = !isSame(memory, bound[index]);
    bound[index] = memory;
    return moved;
  }

  /**
   * Whether one segment may be used as the other. Segments are equal by their addresses alone, but
   * memory that was freed and allocated again must be used by its new owner.
   */
  private static boolean isSame(MemorySegment memory, @Nullable MemorySegment before) {
    return before != null
        && memory.equals(before)
        && memory.scope().equals(before.scope())
        && memory.isReadOnly() == before.isReadOnly();
  }

  /** {@return the tensor at an address of this rank's memory} */
  HostTensor tensor(TensorRef ref) {
    long bytes = ref.type().storageBytes();
    return new HostTensor(
        bytes == 0 ? MemorySegment.NULL : base(ref).asSlice(ref.offset(), bytes), ref.type());
  }

  /** {@return a stretch of the symmetric arena} */
  MemorySegment symmetric(long offset, long bytes) {
    return symmetric.asSlice(offset, bytes);
  }

  private MemorySegment base(TensorRef ref) {
    return switch (ref.arena()) {
      case SYMMETRIC -> symmetric;
      case LOCAL -> local;
      case HOST -> host;
      case EXTERNAL_INPUT -> external(inputs, ref, program.inputs().get(ref.index()));
      case EXTERNAL_OUTPUT -> external(outputs, ref, program.outputs().get(ref.index()));
    };
  }

  private MemorySegment external(
      @Nullable MemorySegment[] bound, TensorRef ref, Optional<TensorRef> signature) {
    @Nullable MemorySegment memory = bound[ref.index()];
    if (memory == null) {
      memory =
          allocate(
              owner,
              signature
                  .orElseThrow(() -> new IllegalStateException("no memory for " + ref))
                  .type()
                  .storageBytes());
      bound[ref.index()] = memory;
    }
    return memory;
  }
}
