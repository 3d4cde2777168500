package dev.symplan.runtime.cuda;

import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** One rank's memory, poisoned. */
final class EmulatedMemory {
  private final MemorySegment symmetric;
  private final MemorySegment local;
  private final MemorySegment host;
  private final List<Optional<MemorySegment>> inputs;
  private final List<Optional<MemorySegment>> outputs;

  EmulatedMemory(RankProgram program, long symmetricBytes) {
    symmetric = allocate(symmetricBytes);
    local = allocate(program.localBytes());
    host = allocate(program.hostBytes());
    inputs = program.inputs().stream().map(EmulatedMemory::external).toList();
    outputs = program.outputs().stream().map(EmulatedMemory::external).toList();
  }

  private static Optional<MemorySegment> external(Optional<TensorRef> ref) {
    return ref.filter(r -> r.arena().isExternal())
        .map(r -> allocate(r.offset() + r.type().storageBytes()));
  }

  private static MemorySegment allocate(long bytes) {
    return Arena.ofAuto().allocate(Math.max(1, bytes), EmulatedSession.ALIGNMENT).fill((byte) -1);
  }

  MemorySegment at(ArenaKind arena, int index, long offset) {
    var whole =
        switch (arena) {
          case SYMMETRIC -> symmetric;
          case LOCAL -> local;
          case HOST -> host;
          case EXTERNAL_INPUT -> inputs.get(index).orElseThrow();
          case EXTERNAL_OUTPUT -> outputs.get(index).orElseThrow();
        };
    return whole.asSlice(offset);
  }

  Stream<MemorySegment> all() {
    return Stream.concat(
        Stream.of(symmetric, local, host),
        Stream.concat(inputs.stream(), outputs.stream()).flatMap(Optional::stream));
  }

  HostTensor tensor(TensorRef ref) {
    return new HostTensor(at(ref.arena(), ref.index(), ref.offset()), ref.type());
  }
}
