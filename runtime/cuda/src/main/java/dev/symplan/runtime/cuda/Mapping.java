package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import java.util.ArrayList;
import java.util.List;

/** Addresses of this process at which GPUs of it reach what a handle stands for. */
record Mapping(long address, long bytes) {

  /** An address of the driver's choice. */
  static final long ANYWHERE = 0;

  /**
   * Maps all of a handle, or nothing.
   *
   * @param alignment of the address, a power of two, or {@link #ANYWHERE}
   * @param devices the GPUs that are to reach it
   */
  static Mapping of(
      long handle,
      long bytes,
      long alignment,
      ImmutableList<Integer> devices,
      MemoryDriver driver) {
    var undo = new ArrayList<Runnable>();
    try {
      long address = driver.reserve(bytes, alignment);
      undo.add(() -> driver.unreserve(address, bytes));
      driver.map(address, bytes, handle);
      undo.add(() -> driver.unmap(address, bytes));
      driver.allow(address, bytes, devices);
      return new Mapping(address, bytes);
    } catch (RuntimeException e) {
      throw Release.after(e, undo);
    }
  }

  void free(MemoryDriver driver) {
    Release.all(
        List.of(() -> driver.unmap(address, bytes), () -> driver.unreserve(address, bytes)));
  }
}
