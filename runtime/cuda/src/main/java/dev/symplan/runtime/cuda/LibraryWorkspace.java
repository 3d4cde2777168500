package dev.symplan.runtime.cuda;

import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;

/**
 * Memory beside the plan's arenas that calls of libraries need, as much as the largest of them: all
 * are in one stream.
 */
final class LibraryWorkspace {

  private final Gpu gpu;
  private long bytes;
  private Pointer memory = new BytePointer();

  LibraryWorkspace(Gpu gpu) {
    this.gpu = gpu;
  }

  void reserve(long wanted) {
    bytes = Math.max(bytes, wanted);
  }

  /** Allocates what was reserved: before the first call runs. */
  void allocate() {
    if (bytes > 0) {
      var made = new BytePointer();
      gpu.check()
          .runtime(
              cudart.cudaMalloc(made, bytes),
              "cudaMalloc of %s bytes for libraries".formatted(bytes));
      gpu.onClose(() -> gpu.check().runtime(cudart.cudaFree(made), "cudaFree"));
      memory = made;
    }
  }

  Pointer memory() {
    return memory;
  }
}
