package dev.symplan.runtime.cuda;

import dev.symplan.codegen.TensorRef;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** The copies in host memory of one rank's inputs and outputs. */
final class HostCopies {
  private final Gpu gpu;
  private final Map<TensorRef, HostTensor> tensors = new HashMap<>();

  /** Tensors to copy to the GPU before the next run. */
  private final Set<TensorRef> toUpload = new HashSet<>();

  /** Tensors that are the same here and on the GPU. */
  private final Set<TensorRef> fresh = new HashSet<>();

  /** Tensors to write to the caller's memory at the end of each run. */
  private final Set<TensorRef> bound = new HashSet<>();

  private boolean hasRun;

  HostCopies(Gpu gpu) {
    this.gpu = gpu;
  }

  HostTensor tensor(TensorRef ref) {
    return tensors.computeIfAbsent(ref, r -> HostTensor.allocate(r.type()));
  }

  /** Lets the caller see and change an input; a run may have changed it too. */
  void handOut(TensorRef ref) {
    if (hasRun) {
      fetch(ref);
    }
    toUpload.add(ref);
  }

  void bindInput(TensorRef ref, HostTensor memory) {
    tensors.put(ref, memory);
    toUpload.add(ref);
  }

  void bindOutput(TensorRef ref, HostTensor memory) {
    tensors.put(ref, memory);
    bound.add(ref);
  }

  boolean hasUploads() {
    return !toUpload.isEmpty();
  }

  void upload() {
    var large = new ArrayList<TensorRef>();
    for (var ref : toUpload) {
      long bytes = ref.type().storageBytes();
      if (bytes >= Upload.LARGE) {
        large.add(ref);
      } else if (bytes > 0) {
        gpu.copy(
            new DevicePointer(gpu.memory().address(ref)),
            new DevicePointer(tensor(ref).memory().address()),
            bytes);
      }
    }
    if (!large.isEmpty()) {
      try (var upload = new Upload(gpu)) {
        large.forEach(
            ref ->
                upload.copy(
                    tensor(ref).memory().asSlice(0, ref.type().storageBytes()),
                    gpu.memory().address(ref)));
      }
    }
    fresh.addAll(toUpload);
    toUpload.clear();
  }

  /** Marks everything as out of date, and writes what is bound. */
  void ran() {
    hasRun = true;
    fresh.clear();
    bound.forEach(this::fetch);
  }

  void fetch(TensorRef ref) {
    long bytes = ref.type().storageBytes();
    var memory = tensor(ref).memory();
    // No run changes what may only be read.
    if (bytes > 0 && !memory.isReadOnly() && !toUpload.contains(ref) && fresh.add(ref)) {
      gpu.copy(
          new DevicePointer(memory.address()), new DevicePointer(gpu.memory().address(ref)), bytes);
    }
  }
}
