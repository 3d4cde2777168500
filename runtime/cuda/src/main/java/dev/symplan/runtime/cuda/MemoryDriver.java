package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.runtime.failure.RunException;

/**
 * The driver's functions for mapped memory and NVLink multicast. Tests use another implementation,
 * which records the order of calls, and fails on demand.
 *
 * <p>Each throws a {@link RunException} that names the call. Handles and addresses are the
 * driver's.
 */
interface MemoryDriver {

  /** {@return the granularity of a GPU's memory, in bytes} */
  long granularity(int device);

  /** {@return the handle of new memory of a GPU, which can be exported} */
  long create(int device, long bytes);

  /** {@return a new file descriptor of a handle, for another process; the caller closes it} */
  Shareable.Descriptor export(long handle);

  /** {@return the same for a process of another host, if the driver was made for a fabric} */
  Shareable.Fabric exportToFabric(long handle);

  /** {@return a handle of this process for what another one has exported} */
  long importHandle(Shareable shareable);

  /** {@return where addresses begin that nothing is mapped to} */
  long reserve(long bytes, long alignment);

  /** Maps a handle, from its begin on, to addresses that are reserved. */
  void map(long address, long bytes, long handle);

  /** Lets GPUs of this process read and write what is mapped. */
  void allow(long address, long bytes, ImmutableList<Integer> devices);

  void unmap(long address, long bytes);

  void unreserve(long address, long bytes);

  /** Lets go of a handle. */
  void release(long handle);

  /**
   * {@return the granularity of multicast objects, and of memory that is bound to them, in bytes}
   */
  long multicastGranularity(int devices, long bytes);

  /** {@return the handle of a new multicast object, which can be exported} */
  long createMulticast(int devices, long bytes);

  /** Adds a GPU of this process to a multicast object, for as long as there is one. */
  void addDevice(long multicast, int device);

  /** Binds memory of a GPU that was added; waits until all have been. */
  void bind(long multicast, long memory, long bytes);

  /** Undoes {@link #bind}. */
  void unbind(long multicast, int device, long bytes);
}
