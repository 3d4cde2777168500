package dev.symplan.runtime.cuda;

import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.planner.Arena;
import dev.symplan.runtime.cuda.Peers.Region;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.cuda.global.nccl;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.Pointer;

/**
 * One GPU's memory: two arenas, external inputs and outputs, and what kernels meet by. Peers touch
 * the {@linkplain Peers.Region regions} alone.
 */
final class GpuMemory {

  /** Also asked for where nothing is needed, so that every arena has an address. */
  private static final long LEAST = 4096;

  /** Fresh memory: not a number in every type of floats. */
  private static final int POISON = 0xFF;

  private final Check check;
  private final long symmetricBytes;
  private final Map<Region, Pointer> regions = new EnumMap<>(Region.class);
  private final Pointer local;
  private final Pointer meetings;
  private final IntPointer failure = new IntPointer();
  private final long failureOnDevice;
  private final List<Optional<Pointer>> inputs;
  private final List<Optional<Pointer>> outputs;
  private final List<Pointer> owned = new ArrayList<>();

  /**
   * To be called by the thread of the GPU; what is shared can be reached by all GPUs of the
   * process.
   */
  GpuMemory(RankProgram program, long symmetricBytes, int places, Check check) {
    this.check = check;
    this.symmetricBytes = Math.max(LEAST, Math.ceilDiv(symmetricBytes, LEAST) * LEAST);
    share(Region.ARENA, this.symmetricBytes, POISON);
    this.local = allocate(program.localBytes(), POISON);
    share(Region.FLAGS, (long) places * DeviceProgram.FLAGS * Integer.BYTES, 0);
    this.meetings = allocate((long) places * DeviceProgram.MAX_BLOCKS * Integer.BYTES, 0);
    check.runtime(
        cudart.cudaHostAlloc(failure, Integer.BYTES, cudart.cudaHostAllocMapped), "cudaHostAlloc");
    failure.put(0, 0);
    var mapped = new BytePointer();
    check.runtime(cudart.cudaHostGetDevicePointer(mapped, failure, 0), "cudaHostGetDevicePointer");
    this.failureOnDevice = mapped.address();
    this.inputs = program.inputs().stream().map(ref -> external(ref)).toList();
    this.outputs = program.outputs().stream().map(ref -> external(ref)).toList();
    check.runtime(cudart.cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  private Optional<Pointer> external(Optional<TensorRef> ref) {
    return ref.filter(r -> r.arena().isExternal())
        .map(r -> allocate(r.offset() + r.type().storageBytes(), POISON));
  }

  private Pointer allocate(long bytes, int fill) {
    var memory = new BytePointer();
    long rounded = Math.max(LEAST, bytes);
    check.runtime(cudart.cudaMalloc(memory, rounded), "cudaMalloc of " + rounded + " bytes");
    owned.add(memory);
    check.runtime(cudart.cudaMemset(memory, fill, rounded), "cudaMemset");
    return memory;
  }

  private void share(Region region, long bytes, int fill) {
    var memory = new BytePointer();
    long rounded = Math.max(LEAST, bytes);
    check.nccl(nccl.ncclMemAlloc(memory, rounded), "ncclMemAlloc of " + rounded + " bytes");
    regions.put(region, memory);
    check.runtime(cudart.cudaMemset(memory, fill, rounded), "cudaMemset");
  }

  Pointer region(Region region) {
    return Objects.requireNonNull(regions.get(region));
  }

  long symmetricBytes() {
    return symmetricBytes;
  }

  long meetings(int place) {
    return meetings.address() + (long) place * DeviceProgram.MAX_BLOCKS * Integer.BYTES;
  }

  long failureOnDevice() {
    return failureOnDevice;
  }

  /** {@return whether a kernel gave up waiting for its peers} */
  boolean hasFailed() {
    return failure.get(0) != 0;
  }

  /** {@return where a tensor is} */
  long address(TensorRef ref) {
    return address(ref.arena(), ref.index(), ref.offset());
  }

  long address(Arena arena, int index, long offset) {
    var base =
        switch (arena) {
          case SYMMETRIC -> region(Region.ARENA);
          case LOCAL -> local;
          case EXTERNAL_INPUT -> inputs.get(index).orElseThrow();
          case EXTERNAL_OUTPUT -> outputs.get(index).orElseThrow();
        };
    return base.address() + offset;
  }

  /** To be called by the thread of the GPU, when nothing runs any more. */
  void free() {
    owned.forEach(memory -> check.runtime(cudart.cudaFree(memory), "cudaFree"));
    regions.values().forEach(memory -> check.nccl(nccl.ncclMemFree(memory), "ncclMemFree"));
    check.runtime(cudart.cudaFreeHost(failure), "cudaFreeHost");
  }
}
