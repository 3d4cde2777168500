package dev.symplan.runtime.cuda;

import dev.symplan.runtime.failure.RunException;
import org.bytedeco.cuda.cudart.CUmemAccessDesc_v1;
import org.bytedeco.cuda.cudart.CUmemAllocationProp_v1;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.SizeTPointer;

/**
 * A block of a GPU's memory that one GPU of this process can reach, by CUDA's virtual memory
 * management; it may be another process's. Its handle is a POSIX file descriptor, as NCCL has it.
 *
 * @param handle the driver's
 * @param address where it is mapped
 * @param bytes all of it: more than was asked for
 */
record MappedBlock(long handle, long address, long bytes) {
  private static final int BY_DESCRIPTOR = cudart.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

  private static CUmemAllocationProp_v1 properties(int device) {
    var properties = new CUmemAllocationProp_v1();
    properties
        .type(cudart.CU_MEM_ALLOCATION_TYPE_PINNED)
        .requestedHandleTypes(BY_DESCRIPTOR)
        .allocFlags_compressionType((byte) 0)
        .allocFlags_gpuDirectRDMACapable((byte) 0)
        .allocFlags_usage((short) 0);
    properties.location().type(cudart.CU_MEM_LOCATION_TYPE_DEVICE).id(device);
    return properties;
  }

  /** {@return new memory of a GPU} */
  static MappedBlock allocate(int device, long bytes, Check check) {
    try (var properties = properties(device);
        var granularity = new SizeTPointer(1)) {
      check.driver(
          cudart.cuMemGetAllocationGranularity(
              granularity, properties, cudart.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
          "cuMemGetAllocationGranularity");
      long rounded = Math.ceilDiv(bytes, granularity.get()) * granularity.get();
      var handle = new long[1];
      check.driver(
          cudart.cuMemCreate(handle, rounded, properties, 0),
          "cuMemCreate of " + rounded + " bytes");
      return map(handle[0], rounded, device, check);
    }
  }

  /**
   * {@return memory that another process has allocated}
   *
   * @param descriptor of its handle; it may be closed then
   * @param device the GPU of this process that is to reach it
   */
  static MappedBlock of(int descriptor, long bytes, int device, Check check) {
    var handle = new long[1];
    check.driver(
        cudart.cuMemImportFromShareableHandle(handle, new DevicePointer(descriptor), BY_DESCRIPTOR),
        "cuMemImportFromShareableHandle");
    return map(handle[0], bytes, device, check);
  }

  private static MappedBlock map(long handle, long bytes, int device, Check check) {
    var address = new long[1];
    try (var access = new CUmemAccessDesc_v1()) {
      check.driver(
          cudart.cuMemAddressReserve(address, bytes, 0, 0, 0),
          "cuMemAddressReserve of " + bytes + " bytes");
      check.driver(cudart.cuMemMap(address[0], bytes, 0, handle, 0), "cuMemMap");
      access.flags(cudart.CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
      access.location().type(cudart.CU_MEM_LOCATION_TYPE_DEVICE).id(device);
      check.driver(cudart.cuMemSetAccess(address[0], bytes, access, 1), "cuMemSetAccess");
    } catch (RunException e) {
      // Calls for parts that were never made fail; only the first failure counts.
      cudart.cuMemUnmap(address[0], bytes);
      cudart.cuMemAddressFree(address[0], bytes);
      cudart.cuMemRelease(handle);
      throw e;
    }
    return new MappedBlock(handle, address[0], bytes);
  }

  /** {@return a new file descriptor for another process; the caller closes it} */
  int export(Check check) {
    try (var descriptor = new IntPointer(1)) {
      check.driver(
          cudart.cuMemExportToShareableHandle(descriptor, handle, BY_DESCRIPTOR, 0),
          "cuMemExportToShareableHandle");
      return descriptor.get();
    }
  }

  /** Lets go of it; it is freed once all processes have. */
  void free(Check check) {
    check.driver(cudart.cuMemUnmap(address, bytes), "cuMemUnmap");
    check.driver(cudart.cuMemAddressFree(address, bytes), "cuMemAddressFree");
    check.driver(cudart.cuMemRelease(handle), "cuMemRelease");
  }
}
