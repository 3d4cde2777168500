package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.math.LongMath;
import java.util.List;

/**
 * A block of a GPU's memory that GPUs of this process can reach, by CUDA's virtual memory
 * management; it may be another process's.
 *
 * @param handle the driver's
 * @param mapping all of it: more than was asked for
 */
record MappedBlock(long handle, Mapping mapping) {

  /**
   * {@return new memory of a GPU}
   *
   * @param units the size must be a multiple of this, and of what the GPU requires
   * @param devices the GPUs of this process that are to reach it
   */
  static MappedBlock allocate(
      int device,
      long bytes,
      ImmutableSet<Long> units,
      ImmutableList<Integer> devices,
      MemoryDriver driver) {
    long unit = driver.granularity(device);
    for (long other : units) {
      unit = unit / LongMath.gcd(unit, other) * other;
    }
    long rounded = Math.ceilDiv(bytes, unit) * unit;
    return map(driver.create(device, rounded), rounded, devices, driver);
  }

  /**
   * {@return memory that another process has allocated}
   *
   * @param exported its handle; a descriptor may be closed then
   * @param device the GPU of this process that is to reach it
   */
  static MappedBlock of(Shareable exported, long bytes, int device, MemoryDriver driver) {
    return map(driver.importHandle(exported), bytes, ImmutableList.of(device), driver);
  }

  private static MappedBlock map(
      long handle, long bytes, ImmutableList<Integer> devices, MemoryDriver driver) {
    try {
      return new MappedBlock(handle, Mapping.of(handle, bytes, Mapping.ANYWHERE, devices, driver));
    } catch (RuntimeException e) {
      throw Release.after(e, List.of(() -> driver.release(handle)));
    }
  }

  /** {@return where it is mapped} */
  long address() {
    return mapping.address();
  }

  long bytes() {
    return mapping.bytes();
  }

  /** Lets go of it; it is freed once all processes have. */
  void free(MemoryDriver driver) {
    Release.all(List.of(() -> mapping.free(driver), () -> driver.release(handle)));
  }
}
