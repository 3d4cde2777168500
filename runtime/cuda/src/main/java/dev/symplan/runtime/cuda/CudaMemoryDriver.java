package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.runtime.failure.RunException;
import java.util.function.IntSupplier;
import org.bytedeco.cuda.cudart.CUmemAccessDesc_v1;
import org.bytedeco.cuda.cudart.CUmemAllocationProp_v1;
import org.bytedeco.cuda.cudart.CUmulticastObjectProp_v1;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.SizeTPointer;

/**
 * CUDA's driver. Handles are shared as POSIX file descriptors, as NCCL shares them.
 *
 * <p>What concerns multicast is written to the driver's documentation, and has not run yet: it
 * needs GPUs of one NVSwitch fabric on which it may be used.
 */
record CudaMemoryDriver(Check check) implements MemoryDriver {
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

  @Override
  public long granularity(int device) {
    try (var properties = properties(device);
        var granularity = new SizeTPointer(1)) {
      check.driver(
          cudart.cuMemGetAllocationGranularity(
              granularity, properties, cudart.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
          "cuMemGetAllocationGranularity");
      return granularity.get();
    }
  }

  @Override
  public long create(int device, long bytes) {
    var handle = new long[1];
    try (var properties = properties(device)) {
      check.driver(
          cudart.cuMemCreate(handle, bytes, properties, 0), "cuMemCreate of " + bytes + " bytes");
    }
    return handle[0];
  }

  @Override
  public int export(long handle) {
    try (var descriptor = new IntPointer(1)) {
      check.driver(
          cudart.cuMemExportToShareableHandle(descriptor, handle, BY_DESCRIPTOR, 0),
          "cuMemExportToShareableHandle");
      return descriptor.get();
    }
  }

  @Override
  public long importHandle(int descriptor) {
    var handle = new long[1];
    check.driver(
        cudart.cuMemImportFromShareableHandle(handle, new DevicePointer(descriptor), BY_DESCRIPTOR),
        "cuMemImportFromShareableHandle");
    return handle[0];
  }

  @Override
  public long reserve(long bytes, long alignment) {
    var address = new long[1];
    check.driver(
        cudart.cuMemAddressReserve(address, bytes, alignment, 0, 0),
        "cuMemAddressReserve of " + bytes + " bytes");
    return address[0];
  }

  @Override
  public void map(long address, long bytes, long handle) {
    check.driver(cudart.cuMemMap(address, bytes, 0, handle, 0), "cuMemMap");
  }

  @Override
  public void allow(long address, long bytes, ImmutableList<Integer> devices) {
    try (var access = new CUmemAccessDesc_v1(devices.size())) {
      for (int i = 0; i < devices.size(); i++) {
        var one = access.getPointer(i);
        one.flags(cudart.CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        one.location().type(cudart.CU_MEM_LOCATION_TYPE_DEVICE).id(devices.get(i));
      }
      check.driver(cudart.cuMemSetAccess(address, bytes, access, devices.size()), "cuMemSetAccess");
    }
  }

  @Override
  public void unmap(long address, long bytes) {
    check.driver(cudart.cuMemUnmap(address, bytes), "cuMemUnmap");
  }

  @Override
  public void unreserve(long address, long bytes) {
    check.driver(cudart.cuMemAddressFree(address, bytes), "cuMemAddressFree");
  }

  @Override
  public void release(long handle) {
    check.driver(cudart.cuMemRelease(handle), "cuMemRelease");
  }

  private static CUmulticastObjectProp_v1 multicastProperties(int devices, long bytes) {
    return new CUmulticastObjectProp_v1()
        .numDevices(devices)
        .size(bytes)
        .handleTypes(BY_DESCRIPTOR)
        .flags(0);
  }

  @Override
  public long multicastGranularity(int devices, long bytes) {
    try (var properties = multicastProperties(devices, bytes);
        var granularity = new SizeTPointer(1)) {
      multicast(
          () ->
              cudart.cuMulticastGetGranularity(
                  granularity, properties, cudart.CU_MULTICAST_GRANULARITY_RECOMMENDED),
          "cuMulticastGetGranularity");
      return granularity.get();
    }
  }

  @Override
  public long createMulticast(int devices, long bytes) {
    var handle = new long[1];
    try (var properties = multicastProperties(devices, bytes)) {
      multicast(
          () -> cudart.cuMulticastCreate(handle, properties),
          "cuMulticastCreate for %s GPUs and %s bytes".formatted(devices, bytes));
    }
    return handle[0];
  }

  @Override
  public void addDevice(long multicast, int device) {
    multicast(() -> cudart.cuMulticastAddDevice(multicast, device(device)), "cuMulticastAddDevice");
  }

  @Override
  public void bind(long multicast, long memory, long bytes) {
    multicast(
        () -> cudart.cuMulticastBindMem(multicast, 0, memory, 0, bytes, 0),
        "cuMulticastBindMem of " + bytes + " bytes");
  }

  @Override
  public void unbind(long multicast, int device, long bytes) {
    multicast(
        () -> cudart.cuMulticastUnbind(multicast, device(device), 0, bytes), "cuMulticastUnbind");
  }

  /** {@return what the driver calls the GPU that CUDA's runtime gives this number} */
  private int device(int number) {
    var device = new int[1];
    check.driver(cudart.cuDeviceGet(device, number), "cuDeviceGet");
    return device[0];
  }

  /** Says of a call that fails what most likely is missing: the driver's own text does not. */
  private void multicast(IntSupplier call, String name) {
    int status = call.getAsInt();
    try {
      check.driver(status, name);
    } catch (RunException e) {
      throw new RunException(
          e.getMessage()
              + "; NVLink multicast needs GPUs of one NVSwitch fabric, with its fabric manager"
              + " running; --multicast=off does without",
          e);
    }
  }
}
