package dev.symplan.runtime.host;

import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** The memory of one rank: two arenas, and the caller's inputs and outputs. */
final class HostMemory {
  private final MemorySegment symmetric;
  private final MemorySegment local;
  private final @Nullable MemorySegment[] inputs;
  private final @Nullable MemorySegment[] outputs;

  /**
   * @param owner allocates the external inputs and outputs until the caller binds its own
   */
  HostMemory(RankProgram program, MemorySegment symmetric, MemorySegment local, Arena owner) {
    this.symmetric = symmetric;
    this.local = local;
    this.inputs = new @Nullable MemorySegment[program.inputs().size()];
    this.outputs = new @Nullable MemorySegment[program.outputs().size()];
    for (int i = 0; i < inputs.length; i++) {
      var ref = program.inputs().get(i);
      if (ref.isPresent() && ref.get().arena() == dev.symplan.planner.Arena.EXTERNAL_INPUT) {
        inputs[i] = HostTensor.allocate(owner, ref.get().type()).memory();
      }
    }
    for (int i = 0; i < outputs.length; i++) {
      var ref = program.outputs().get(i);
      if (ref.isPresent()
          && ref.get().arena() == dev.symplan.planner.Arena.EXTERNAL_OUTPUT
          && ref.get().index() == i) {
        outputs[i] = HostTensor.allocate(owner, ref.get().type()).memory();
      }
    }
  }

  void bindInput(int index, MemorySegment memory) {
    inputs[index] = memory;
  }

  void bindOutput(int index, MemorySegment memory) {
    outputs[index] = memory;
  }

  /** {@return the tensor at a place of this rank's memory} */
  HostTensor tensor(TensorRef ref) {
    var base =
        switch (ref.arena()) {
          case SYMMETRIC -> symmetric;
          case LOCAL -> local;
          case EXTERNAL_INPUT -> inputs[ref.index()];
          case EXTERNAL_OUTPUT -> outputs[ref.index()];
        };
    if (base == null) {
      throw new IllegalStateException("no memory for " + ref);
    }
    long bytes = ref.type().storageBytes();
    return new HostTensor(
        bytes == 0 ? MemorySegment.NULL : base.asSlice(ref.offset(), bytes), ref.type());
  }
}
