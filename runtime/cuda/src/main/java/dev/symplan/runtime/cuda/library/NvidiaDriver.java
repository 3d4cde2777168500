package dev.symplan.runtime.cuda.library;

import com.google.common.collect.ImmutableList;
import dev.symplan.runtime.doctor.Machine.Gpu;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.OptionalInt;

/**
 * The part of the driver's own interface that reports facts about GPUs, without a context and
 * without CUDA's libraries. The numbers are those of {@code cuda.h}, where they never change.
 */
final class NvidiaDriver {
  private static final int MULTIPROCESSOR_COUNT = 16;
  private static final int ASYNC_ENGINE_COUNT = 40;
  private static final int COMPUTE_CAPABILITY_MAJOR = 75;
  private static final int COMPUTE_CAPABILITY_MINOR = 76;
  private static final int VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102;
  private static final int HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103;
  private static final int HANDLE_TYPE_FABRIC_SUPPORTED = 128;
  private static final int MULTICAST_SUPPORTED = 132;
  private static final int P2P_NATIVE_ATOMIC_SUPPORTED = 3;
  private static final int NO_DEVICE = 100;
  private static final int NAME_BYTES = 256;

  private static final ImmutableList<String> FUNCTIONS =
      ImmutableList.of(
          "cuInit",
          "cuDriverGetVersion",
          "cuDeviceCanAccessPeer",
          "cuDeviceGet",
          "cuDeviceGetAttribute",
          "cuDeviceGetCount",
          "cuDeviceGetName",
          "cuDeviceGetP2PAttribute",
          "cuDeviceGetPCIBusId",
          "cuDeviceTotalMem_v2");

  private final SharedLibrary library;
  private final int gpus;

  private NvidiaDriver(SharedLibrary library, int gpus) {
    this.library = library;
    this.gpus = gpus;
  }

  /** Whether the driver answers. */
  sealed interface Start {}

  record Started(NvidiaDriver driver) implements Start {}

  record Unusable(String why) implements Start {}

  static Start start(SharedLibrary library) {
    for (var function : FUNCTIONS) {
      if (!library.has(function)) {
        return new Unusable(
            "%s has no %s: it is a stub or damaged".formatted(library.file(), function));
      }
    }
    int status = library.call("cuInit", 0);
    // The driver of a machine without any GPU says so already here.
    if (status == NO_DEVICE) {
      return new Unusable("the NVIDIA driver found no GPU");
    }
    if (status != 0) {
      return new Unusable(
          "the NVIDIA driver cannot be used: cuInit says %s".formatted(error(library, status)));
    }
    var count = library.ask("cuDeviceGetCount", SharedLibrary.RESULT);
    return count.isPresent()
        ? new Started(new NvidiaDriver(library, count.getAsInt()))
        : new Unusable("the NVIDIA driver does not report the number of GPUs");
  }

  private static String error(SharedLibrary library, int status) {
    if (!library.has("cuGetErrorName")) {
      return Integer.toString(status);
    }
    try (var arena = Arena.ofConfined()) {
      var name = arena.allocate(ValueLayout.ADDRESS);
      return library.call("cuGetErrorName", status, name) == 0
          ? name.get(ValueLayout.ADDRESS, 0).reinterpret(NAME_BYTES).getString(0)
          : Integer.toString(status);
    }
  }

  int gpus() {
    return gpus;
  }

  Gpu gpu(int index) {
    int device = device(index);
    return new Gpu(
        index,
        name(device),
        memory(device),
        10 * attribute(COMPUTE_CAPABILITY_MAJOR, device)
            + attribute(COMPUTE_CAPABILITY_MINOR, device),
        attribute(MULTIPROCESSOR_COUNT, device),
        attribute(ASYNC_ENGINE_COUNT, device),
        attribute(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) == 1,
        attribute(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device) == 1,
        attribute(HANDLE_TYPE_FABRIC_SUPPORTED, device) == 1,
        attribute(MULTICAST_SUPPORTED, device) == 1);
  }

  boolean reaches(int from, int to) {
    return library
            .ask("cuDeviceCanAccessPeer", SharedLibrary.RESULT, device(from), device(to))
            .orElse(0)
        == 1;
  }

  boolean hasAtomics(int from, int to) {
    return library
            .ask(
                "cuDeviceGetP2PAttribute",
                SharedLibrary.RESULT,
                P2P_NATIVE_ATOMIC_SUPPORTED,
                device(from),
                device(to))
            .orElse(0)
        == 1;
  }

  /** {@return as NVML knows the GPU: {@code 0000:1b:00.0}} */
  String busId(int index) {
    try (var arena = Arena.ofConfined()) {
      var text = arena.allocate(NAME_BYTES);
      int status = library.call("cuDeviceGetPCIBusId", text, NAME_BYTES, device(index));
      return status == 0 ? text.getString(0).toLowerCase(Locale.ROOT) : "";
    }
  }

  private int device(int index) {
    return library.ask("cuDeviceGet", SharedLibrary.RESULT, index).orElse(index);
  }

  private int attribute(int attribute, int device) {
    OptionalInt value =
        library.ask("cuDeviceGetAttribute", SharedLibrary.RESULT, attribute, device);
    return value.orElse(0);
  }

  private String name(int device) {
    try (var arena = Arena.ofConfined()) {
      var text = arena.allocate(NAME_BYTES);
      return library.call("cuDeviceGetName", text, NAME_BYTES, device) == 0
          ? text.getString(0, StandardCharsets.UTF_8)
          : "unknown";
    }
  }

  private long memory(int device) {
    try (var arena = Arena.ofConfined()) {
      var bytes = arena.allocate(ValueLayout.JAVA_LONG);
      return library.call("cuDeviceTotalMem_v2", bytes, device) == 0
          ? bytes.get(ValueLayout.JAVA_LONG, 0)
          : 0;
    }
  }
}
