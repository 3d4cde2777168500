package dev.symplan.runtime.cuda;

import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.KernelArgument;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.runtime.cuda.Peers.Region;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.Pointer;

/**
 * One GPU's memory: two arenas, external inputs and outputs, and what kernels meet by. Peers touch
 * the {@linkplain Peers.Region regions} alone.
 */
final class GpuMemory {

  /** Also asked for where nothing is needed, so that every arena has an address. */
  private static final long MIN_BYTES = 4096;

  /** Fresh memory: not a number in every type of floats; in workspaces, that nothing is there. */
  private static final int POISON = DeviceProgram.EMPTY & 0xFF;

  private final Check check;
  private final long symmetricBytes;
  private final Map<Region, Pointer> regions = new EnumMap<>(Region.class);
  private final Pointer local;

  /** Pinned: what moves to the host's memory while compute goes on. */
  private final Pointer host;

  private final Pointer meetings;
  private final FailureWords failures;
  private final int pads;

  /** A one for each signal pad, in memory that the GPU copies from while kernels run. */
  private final BytePointer ones;

  private final ExternalMemory external;
  private final List<Runnable> releases = new ArrayList<>();

  /** To be called by the thread of the GPU. */
  GpuMemory(
      RankProgram program,
      DeviceProgram device,
      long symmetricBytes,
      Sharing sharing,
      Check check) {
    this.check = check;
    this.pads = device.pads();
    this.external = new ExternalMemory(program, this::allocateExternal);
    this.symmetricBytes = Math.max(MIN_BYTES, Math.ceilDiv(symmetricBytes, MIN_BYTES) * MIN_BYTES);
    try {
      share(sharing, Region.ARENA, this.symmetricBytes, POISON);
      this.local = allocate(program.localBytes(), POISON);
      this.host = pinned(Math.max(1, program.hostBytes()), cudart.cudaHostAllocDefault);
      share(sharing, Region.FLAGS, (long) pads * DeviceProgram.FLAGS * Integer.BYTES, 0);
      this.meetings = allocate((long) pads * DeviceProgram.COUNTS * Integer.BYTES, 0);
      this.failures = failures(program, waiting(device));
      this.ones = ones();
      // The whole device need not be idle: an earlier session may have left something there.
      check.runtime(cudart.cudaStreamSynchronize(null), "cudaStreamSynchronize");
    } catch (RuntimeException e) {
      throw Release.after(e, releases);
    }
  }

  private FailureWords failures(RankProgram program, int words) {
    long bytes = Math.max(1L, words) * Integer.BYTES;
    var memory = pinned(bytes, cudart.cudaHostAllocMapped);
    try (var mapped = new BytePointer()) {
      check.runtime(cudart.cudaHostGetDevicePointer(mapped, memory, 0), "cudaHostGetDevicePointer");
      return new FailureWords(
          program,
          MemorySegment.ofAddress(memory.address()).reinterpret(bytes).fill((byte) 0),
          mapped.address());
    }
  }

  private BytePointer ones() {
    var one = new int[Math.max(1, pads)];
    Arrays.fill(one, 1);
    var memory = pinned((long) one.length * Integer.BYTES, cudart.cudaHostAllocDefault);
    new IntPointer(memory).put(one);
    return memory;
  }

  private BytePointer pinned(long bytes, int flags) {
    var memory = new BytePointer();
    check.runtime(cudart.cudaHostAlloc(memory, bytes, flags), "cudaHostAlloc");
    releases.add(() -> check.runtime(cudart.cudaFreeHost(memory), "cudaFreeHost"));
    return memory;
  }

  /** {@return the number of launches that wait for peers} */
  private static int waiting(DeviceProgram program) {
    return Math.toIntExact(
        program.steps().stream()
            .flatMap(step -> step.launches().stream())
            .filter(launch -> launch.words().contains(KernelArgument.Failure.FAILURE))
            .count());
  }

  /** For a tensor of the caller's to which the caller gives no memory. */
  private long allocateExternal(long bytes) {
    var memory = allocate(bytes, POISON);
    check.runtime(cudart.cudaStreamSynchronize(null), "cudaStreamSynchronize");
    return memory.address();
  }

  private Pointer allocate(long bytes, int fill) {
    var memory = new BytePointer();
    long rounded = Math.max(MIN_BYTES, bytes);
    check.runtime(cudart.cudaMalloc(memory, rounded), "cudaMalloc of " + rounded + " bytes");
    releases.add(() -> check.runtime(cudart.cudaFree(memory), "cudaFree"));
    check.runtime(cudart.cudaMemset(memory, fill, rounded), "cudaMemset");
    return memory;
  }

  private void share(Sharing sharing, Region region, long bytes, int fill) {
    long rounded = Math.max(MIN_BYTES, bytes);
    var memory = sharing.allocate(region, rounded, check);
    regions.put(region, memory);
    releases.add(() -> sharing.free(memory, check));
    check.runtime(cudart.cudaMemset(memory, fill, rounded), "cudaMemset");
  }

  ExternalMemory external() {
    return external;
  }

  Pointer region(Region region) {
    return Objects.requireNonNull(regions.get(region));
  }

  long symmetricBytes() {
    return symmetricBytes;
  }

  long meetings(int pad) {
    return meetings.address() + (long) pad * DeviceProgram.COUNTS * Integer.BYTES;
  }

  /** {@return where kernels say that they gave up waiting for their peers} */
  FailureWords failures() {
    return failures;
  }

  /** Makes the kernels of this GPU that wait for peers give up. */
  void giveUp(CUstream_st stream) {
    long pitch = (long) DeviceProgram.FLAGS * Integer.BYTES;
    if (pads > 0) {
      check.runtime(
          cudart.cudaMemcpy2DAsync(
              new DevicePointer(region(Region.FLAGS).address() + pitch - Integer.BYTES),
              pitch,
              ones,
              Integer.BYTES,
              Integer.BYTES,
              pads,
              cudart.cudaMemcpyHostToDevice,
              stream),
          "cudaMemcpy2DAsync");
    }
  }

  /** {@return where a tensor is} */
  long address(TensorRef ref) {
    return address(ref.arena(), ref.index(), ref.offset());
  }

  long address(ArenaKind arena, int index, long offset) {
    var base =
        switch (arena) {
          case SYMMETRIC -> region(Region.ARENA).address();
          case LOCAL -> local.address();
          case HOST -> host.address();
          case EXTERNAL_INPUT, EXTERNAL_OUTPUT -> external.base(arena, index);
        };
    return base + offset;
  }

  /** To be called by the thread of the GPU, when nothing runs any more. */
  void free() {
    Release.all(releases.reversed());
  }
}
