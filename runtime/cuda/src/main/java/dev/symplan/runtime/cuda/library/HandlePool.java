package dev.symplan.runtime.cuda.library;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Handles of a library such as cuBLASLt or cuDNN. What was given back is used again and never
 * destroyed: the libraries call {@code cudaDeviceSynchronize} to destroy a handle, and that
 * invalidates the captures that other threads make on the same GPU.
 */
public final class HandlePool<T> {
  private final Map<Integer, Deque<T>> unused = new HashMap<>();

  /**
   * {@return a handle that nobody else has}
   *
   * @param device the current GPU, as this process counts them
   * @param make makes one for the current GPU
   */
  public T take(int device, Supplier<T> make) {
    synchronized (unused) {
      var handles = unused.get(device);
      if (handles != null && !handles.isEmpty()) {
        return handles.pop();
      }
    }
    return make.get();
  }

  /** Gives a handle back to be used by others. */
  public void giveBack(int device, T handle) {
    synchronized (unused) {
      unused.computeIfAbsent(device, _ -> new ArrayDeque<>()).push(handle);
    }
  }
}
