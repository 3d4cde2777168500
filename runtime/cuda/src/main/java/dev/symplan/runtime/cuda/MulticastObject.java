package dev.symplan.runtime.cuda;

import java.util.concurrent.atomic.AtomicInteger;

/** A multicast object as one process knows it: its GPUs share the handle, and the last lets go. */
final class MulticastObject {
  private final long handle;
  private final AtomicInteger users = new AtomicInteger(1);

  private MulticastObject(long handle) {
    this.handle = handle;
  }

  /** {@return a new one, whose maker is its first user} */
  static MulticastObject create(int devices, long bytes, MemoryDriver driver) {
    return new MulticastObject(driver.createMulticast(devices, bytes));
  }

  /** {@return another process's, whose taker is its first user} */
  static MulticastObject of(Shareable exported, MemoryDriver driver) {
    return new MulticastObject(driver.importHandle(exported));
  }

  long handle() {
    return handle;
  }

  /** Counts another user, while there still is one. */
  void share() {
    users.incrementAndGet();
  }

  /** Counts a user less, who has unbound what it had bound. */
  void release(MemoryDriver driver) {
    if (users.decrementAndGet() == 0) {
      driver.release(handle);
    }
  }
}
