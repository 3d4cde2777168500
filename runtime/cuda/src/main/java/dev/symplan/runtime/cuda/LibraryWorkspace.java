package dev.symplan.runtime.cuda;

import java.util.ArrayList;
import java.util.List;
import java.util.function.LongConsumer;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;

/**
 * Memory beside the plan's arenas that calls of libraries, and some kernels of ours, need, as much
 * as the largest of them: all are in one stream.
 */
final class LibraryWorkspace {

  private final Gpu gpu;
  private long bytes;
  private Pointer memory = new BytePointer();
  private final List<LongConsumer> followers = new ArrayList<>();

  LibraryWorkspace(Gpu gpu) {
    this.gpu = gpu;
  }

  void reserve(long wanted) {
    bytes = Math.max(bytes, wanted);
  }

  /** Has someone learn the address, once it is known. */
  void follow(LongConsumer follower) {
    followers.add(follower);
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
      followers.forEach(follower -> follower.accept(made.address()));
    }
  }

  Pointer memory() {
    return memory;
  }
}
