package dev.symplan.runtime.cuda;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.bytedeco.cuda.cudart.CUevent_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;

/**
 * Copies large tensors to a GPU through pinned buffers: while one is on its way, threads fill the
 * next. A copy from other memory would wait for pages and go through the driver's own buffer, by
 * one thread.
 */
final class Upload implements AutoCloseable {

  /** Tensors of so many bytes gain from it. */
  static final long LARGE = 8L << 20;

  private static final long BUFFER = 32L << 20;
  private static final int BUFFERS = 3;

  /** The bytes that a thread copies at once. */
  private static final long PIECE = 2L << 20;

  private final Gpu gpu;
  private final List<BytePointer> buffers = new ArrayList<>();

  /** For each buffer, when it can be filled again. */
  private final List<CUevent_st> free = new ArrayList<>();

  private int next;

  Upload(Gpu gpu) {
    this.gpu = gpu;
    try {
      for (int i = 0; i < BUFFERS; i++) {
        var buffer = new BytePointer();
        gpu.check()
            .runtime(
                cudart.cudaHostAlloc(buffer, BUFFER, cudart.cudaHostAllocDefault), "cudaHostAlloc");
        buffers.add(buffer);
        free.add(gpu.event(cudart.cudaEventDisableTiming));
      }
    } catch (RuntimeException e) {
      throw Release.after(e, releases());
    }
  }

  /** Copies all of a stretch of memory, or begins to: {@link Gpu#finishCopies} waits. */
  void copy(MemorySegment from, long to) {
    for (long at = 0; at < from.byteSize(); at += BUFFER) {
      long bytes = Math.min(BUFFER, from.byteSize() - at);
      var buffer = buffers.get(next);
      var done = free.get(next);
      // An event that was never recorded is done.
      gpu.check().runtime(cudart.cudaEventSynchronize(done), "cudaEventSynchronize");
      fill(MemorySegment.ofAddress(buffer.address()).reinterpret(bytes), from.asSlice(at, bytes));
      gpu.startCopy(new DevicePointer(to + at), buffer, bytes, done);
      next = (next + 1) % BUFFERS;
    }
  }

  private static void fill(MemorySegment to, MemorySegment from) {
    LongStream.range(0, Math.ceilDiv(from.byteSize(), PIECE))
        .parallel()
        .forEach(
            piece -> {
              long at = piece * PIECE;
              long bytes = Math.min(PIECE, from.byteSize() - at);
              MemorySegment.copy(from, at, to, at, bytes);
            });
  }

  private List<Runnable> releases() {
    var steps = new ArrayList<Runnable>();
    free.forEach(
        event ->
            steps.add(
                () -> gpu.check().runtime(cudart.cudaEventDestroy(event), "cudaEventDestroy")));
    buffers.forEach(
        buffer ->
            steps.add(() -> gpu.check().runtime(cudart.cudaFreeHost(buffer), "cudaFreeHost")));
    return steps;
  }

  /** Waits until the GPU has everything, and frees the buffers. */
  @Override
  public void close() {
    var steps = new ArrayList<Runnable>();
    steps.add(gpu::finishCopies);
    steps.addAll(releases());
    Release.all(steps);
  }
}
