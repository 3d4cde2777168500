package dev.symplan.runtime.cuda.library;

import dev.symplan.runtime.doctor.Machine.NvLinks;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;

/**
 * NVIDIA's management library, the only source of facts about NVLinks. It comes with the driver,
 * but not into every container; facts that it does not report are empty. The numbers are those of
 * {@code nvml.h}.
 */
final class Nvml implements AutoCloseable {
  static final String SONAME = "libnvidia-ml.so.1";

  private static final int MAX_LINKS = 18;
  private static final int ENABLED = 1;
  private static final int REMOTE_GPU = 0;
  private static final int REMOTE_SWITCH = 2;
  private static final int TEXT_BYTES = 96;

  /** {@code nvmlPciInfo_t}; it begins with the bus id in the form that CUDA writes. */
  private static final long PCI_INFO_BYTES = 68;

  private static final int FIELD_LINK_SPEED = 164;
  private static final int FIELD_COMMON_LINK_SPEED = 90;

  /** {@code nvmlFieldValue_t}: field, link, time, latency, type, status, value. */
  private static final long FIELD_BYTES = 40;

  private static final long FIELD_STATUS = 28;
  private static final long FIELD_VALUE = 32;

  /**
   * One end of a link that is up.
   *
   * @param peer the bus id of the GPU at the other end; empty if that is a switch
   */
  private record End(Optional<String> peer) {}

  private final SharedLibrary library;

  private Nvml(SharedLibrary library) {
    this.library = library;
  }

  /** {@return the library, started; empty if it does not start} */
  static Optional<Nvml> start(SharedLibrary library) {
    return library.has("nvmlInit_v2") && library.call("nvmlInit_v2") == 0
        ? Optional.of(new Nvml(library))
        : Optional.empty();
  }

  /** {@return as {@code 580.159.03}} */
  Optional<String> driverVersion() {
    try (var arena = Arena.ofConfined()) {
      var text = arena.allocate(TEXT_BYTES);
      return calls("nvmlSystemGetDriverVersion", text, TEXT_BYTES)
          ? Optional.of(text.getString(0))
          : Optional.empty();
    }
  }

  /**
   * {@return the NVLinks from one GPU to another, directly or through switches}
   *
   * @param from a bus id, as CUDA writes it
   * @param to a bus id
   */
  Optional<NvLinks> links(String from, String to) {
    var device = device(from);
    var other = device(to);
    if (device.isEmpty() || other.isEmpty() || !library.has("nvmlDeviceGetNvLinkState")) {
      return Optional.empty();
    }
    var ends = ends(device.get());
    long direct = ends.stream().filter(end -> end.peer().equals(Optional.of(to))).count();
    long toSwitches = ends.stream().filter(end -> end.peer().isEmpty()).count();
    long fromSwitches = ends(other.get()).stream().filter(end -> end.peer().isEmpty()).count();
    int count = (int) (direct + Math.min(toSwitches, fromSwitches));
    return Optional.of(
        new NvLinks(count, count == 0 ? OptionalDouble.empty() : rate(device.get())));
  }

  private Optional<MemorySegment> device(String busId) {
    try (var arena = Arena.ofConfined()) {
      var device = arena.allocate(ValueLayout.ADDRESS);
      return calls("nvmlDeviceGetHandleByPciBusId_v2", arena.allocateFrom(busId), device)
          ? Optional.of(device.get(ValueLayout.ADDRESS, 0))
          : Optional.empty();
    }
  }

  private List<End> ends(MemorySegment device) {
    var ends = new ArrayList<End>();
    for (int link = 0; link < MAX_LINKS; link++) {
      boolean up =
          library.ask("nvmlDeviceGetNvLinkState", device, link, SharedLibrary.RESULT).orElse(0)
              == ENABLED;
      if (up) {
        int type =
            library
                .ask("nvmlDeviceGetNvLinkRemoteDeviceType", device, link, SharedLibrary.RESULT)
                .orElse(REMOTE_GPU);
        ends.add(
            new End(type == REMOTE_SWITCH ? Optional.empty() : Optional.of(peer(device, link))));
      }
    }
    return ends;
  }

  private String peer(MemorySegment device, int link) {
    try (var arena = Arena.ofConfined()) {
      var info = arena.allocate(PCI_INFO_BYTES, Long.BYTES);
      return calls("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, info)
          ? info.getString(0).toLowerCase(Locale.ROOT)
          : "unknown";
    }
  }

  /** {@return GB/s of a link in each direction} */
  private OptionalDouble rate(MemorySegment device) {
    for (int field : new int[] {FIELD_LINK_SPEED, FIELD_COMMON_LINK_SPEED}) {
      try (var arena = Arena.ofConfined()) {
        var value = arena.allocate(FIELD_BYTES, Long.BYTES);
        value.set(ValueLayout.JAVA_INT, 0, field);
        if (calls("nvmlDeviceGetFieldValues", device, 1, value)
            && value.get(ValueLayout.JAVA_INT, FIELD_STATUS) == 0
            && value.get(ValueLayout.JAVA_INT, FIELD_VALUE) > 0) {
          return OptionalDouble.of(value.get(ValueLayout.JAVA_INT, FIELD_VALUE) / 1000.0);
        }
      }
    }
    return OptionalDouble.empty();
  }

  private boolean calls(String function, Object... arguments) {
    return library.has(function) && library.call(function, arguments) == 0;
  }

  @Override
  public void close() {
    calls("nvmlShutdown");
  }
}
