package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.runtime.failure.RunException;
import java.util.function.IntSupplier;
import org.bytedeco.cuda.cudart.CUmemAccessDesc_v1;
import org.bytedeco.cuda.cudart.CUmemAllocationProp_v1;
import org.bytedeco.cuda.cudart.CUmulticastObjectProp_v1;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.SizeTPointer;

/**
 * CUDA's driver. Handles are shared as POSIX file descriptors, as NCCL shares them, and between the
 * hosts of a fabric as fabric handles.
 *
 * <p>What concerns multicast and fabrics is written to the driver's documentation, and has not run
 * yet: it needs GPUs of one NVSwitch fabric on which it may be used.
 *
 * @param fabric whether other hosts are to map what is made
 * @param network whether adapters are to reach what is made, where the driver lets them
 */
record CudaMemoryDriver(Check check, boolean fabric, boolean network) implements MemoryDriver {
  private static final int BY_DESCRIPTOR = cudart.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  private static final int BY_FABRIC = cudart.CU_MEM_HANDLE_TYPE_FABRIC;

  private static final int RDMA =
      cudart.CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED;

  /** {@return whether the driver gives fabric handles for the memory of a GPU} */
  static boolean hasFabric(int device, Check check) {
    return has(cudart.CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, device, check);
  }

  private static boolean has(int attribute, int device, Check check) {
    var number = new int[1];
    check.driver(cudart.cuDeviceGet(number, device), "cuDeviceGet");
    var supported = new int[1];
    check.driver(
        cudart.cuDeviceGetAttribute(supported, attribute, number[0]), "cuDeviceGetAttribute");
    return supported[0] != 0;
  }

  private int handleTypes() {
    return fabric ? BY_DESCRIPTOR | BY_FABRIC : BY_DESCRIPTOR;
  }

  private CUmemAllocationProp_v1 properties(int device) {
    var properties = new CUmemAllocationProp_v1();
    properties
        .type(cudart.CU_MEM_ALLOCATION_TYPE_PINNED)
        .requestedHandleTypes(handleTypes())
        .allocFlags_compressionType((byte) 0)
        .allocFlags_gpuDirectRDMACapable((byte) (network && has(RDMA, device, check) ? 1 : 0))
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
      overFabric(
          () -> cudart.cuMemCreate(handle, bytes, properties, 0),
          "cuMemCreate of " + bytes + " bytes");
    }
    return handle[0];
  }

  @Override
  public Shareable.Descriptor export(long handle) {
    try (var descriptor = new IntPointer(1)) {
      check.driver(
          cudart.cuMemExportToShareableHandle(descriptor, handle, BY_DESCRIPTOR, 0),
          "cuMemExportToShareableHandle");
      return new Shareable.Descriptor(descriptor.get());
    }
  }

  @Override
  public Shareable.Fabric exportToFabric(long handle) {
    try (var bytes = new BytePointer(Shareable.Fabric.BYTES)) {
      overFabric(
          () -> cudart.cuMemExportToShareableHandle(bytes, handle, BY_FABRIC, 0),
          "cuMemExportToShareableHandle");
      var copy = new byte[Shareable.Fabric.BYTES];
      bytes.get(copy);
      return Shareable.Fabric.of(copy);
    }
  }

  @Override
  public long importHandle(Shareable shareable) {
    var handle = new long[1];
    switch (shareable) {
      case Shareable.Descriptor(int number) ->
          check.driver(
              cudart.cuMemImportFromShareableHandle(
                  handle, new DevicePointer(number), BY_DESCRIPTOR),
              "cuMemImportFromShareableHandle");
      case Shareable.Fabric own -> {
        try (var bytes = new BytePointer(own.toBytes())) {
          overFabric(
              () -> cudart.cuMemImportFromShareableHandle(handle, bytes, BY_FABRIC),
              "cuMemImportFromShareableHandle");
        }
      }
    }
    return handle[0];
  }

  /** Says of a call that fails what a fabric needs. */
  private void overFabric(IntSupplier call, String name) {
    explained(
        call,
        name,
        fabric
            ? "; memory is shared between hosts over an NVLink fabric, which needs its fabric"
                + " manager, and an IMEX channel that this process may open"
            : "");
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

  private CUmulticastObjectProp_v1 multicastProperties(int devices, long bytes) {
    return new CUmulticastObjectProp_v1()
        .numDevices(devices)
        .size(bytes)
        .handleTypes(handleTypes())
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

  /** {@return the driver's number of the GPU that has this number in CUDA's runtime} */
  private int device(int number) {
    var device = new int[1];
    check.driver(cudart.cuDeviceGet(device, number), "cuDeviceGet");
    return device[0];
  }

  /** Says of a call that fails what most likely is missing: the driver's own text does not. */
  private void multicast(IntSupplier call, String name) {
    explained(
        call,
        name,
        "; NVLink multicast needs GPUs of one NVSwitch fabric, with its fabric manager running;"
            + " --multicast=off does without");
  }

  private void explained(IntSupplier call, String name, String needs) {
    int status = call.getAsInt();
    try {
      check.driver(status, name);
    } catch (RunException e) {
      throw new RunException(e.getMessage() + needs, e);
    }
  }
}
