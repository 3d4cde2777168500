package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.runtime.failure.RunException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The driver, as its documentation has it, without a GPU: it writes down what a rank calls, refuses
 * what must not be, and fails one call if told so. Where the real one would wait for ever, it fails
 * the test.
 */
final class RecordingDriver implements MemoryDriver {
  private static final AtomicInteger MACHINES = new AtomicInteger();
  static final long GRANULARITY = 4096;
  static final long PER_GPU = 3 * GRANULARITY;

  /**
   * State that all ranks' drivers share, in one process or several: a test has threads for them.
   */
  static final class Machine {
    /** Memory of a GPU, or a multicast object for some. */
    private static final class Thing {
      final int device;
      final int devices;
      final long bytes;
      final boolean fabric;
      final Set<Integer> added = new HashSet<>();
      final Map<Integer, Long> bound = new TreeMap<>();
      int handles = 1;

      Thing(int device, int devices, long bytes, boolean fabric) {
        this.device = device;
        this.devices = devices;
        this.bytes = bytes;
        this.fabric = fabric;
      }
    }

    private final String name = "symplan-recorded-%s-".formatted(MACHINES.incrementAndGet());
    private final Map<Long, Thing> things = new TreeMap<>();
    private final Map<Long, Long> reserved = new TreeMap<>();
    private final Map<Long, Long> mapped = new TreeMap<>();
    private final List<String> wrong = new ArrayList<>();
    private long handlesMade;
    private long addressesMade;

    /** {@return the handles and addresses that were not given back} */
    synchronized List<String> held() {
      var held = new ArrayList<String>();
      things.forEach(
          (handle, thing) -> {
            if (thing.handles > 0) {
              held.add("handle " + handle);
            }
            thing.bound.forEach((device, _) -> held.add("GPU %s in %s".formatted(device, handle)));
          });
      reserved.forEach((address, _) -> held.add("reserved " + address));
      mapped.forEach((address, _) -> held.add("mapped " + address));
      return held;
    }

    /** {@return how many descriptors of exported handles this process has not closed} */
    long openDescriptors() {
      try (var files = Files.list(Path.of("/proc/self/fd"))) {
        return files.filter(this::isExported).count();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    private boolean isExported(Path file) {
      try {
        return Files.readSymbolicLink(file).toString().contains(name);
      } catch (IOException e) {
        return false;
      }
    }

    /**
     * {@return the calls for which a driver would have waited for ever, or that have no defined
     * result}
     */
    synchronized List<String> wrong() {
      return List.copyOf(wrong);
    }
  }

  private final Machine machine;
  private final int rank;
  private final int failing;
  private final boolean fabric;
  private final List<String> calls = new ArrayList<>();

  /**
   * @param failing which call fails, from 0 on; none if it is negative
   */
  RecordingDriver(Machine machine, int rank, int failing) {
    this(machine, rank, failing, false);
  }

  /**
   * The same.
   *
   * @param fabric whether other hosts are to map what is made
   */
  RecordingDriver(Machine machine, int rank, int failing, boolean fabric) {
    this.machine = machine;
    this.rank = rank;
    this.failing = failing;
    this.fabric = fabric;
  }

  /** {@return the calls, with their arguments} */
  List<String> calls() {
    return calls;
  }

  /** {@return whether the call that fails gives something back} */
  boolean failsToUndo() {
    var call = calls.get(failing);
    return call.startsWith("un") || call.startsWith("release");
  }

  private void call(String text) {
    calls.add(text);
    if (calls.size() - 1 == failing) {
      throw new RunException("rank %s: %s failed: as told".formatted(rank, text));
    }
  }

  private void require(boolean holds, String otherwise) {
    if (!holds) {
      machine.wrong.add("rank %s: %s: %s".formatted(rank, calls.getLast(), otherwise));
      throw new RunException(machine.wrong.getLast());
    }
  }

  private void refuse(boolean refused, String why) {
    if (refused) {
      throw new RunException("rank %s: %s: %s".formatted(rank, calls.getLast(), why));
    }
  }

  private Machine.Thing thing(long handle) {
    var thing = machine.things.get(handle);
    require(thing != null && thing.handles > 0, "no such handle");
    return thing;
  }

  private Machine.Thing multicast(long handle) {
    var thing = thing(handle);
    require(thing.devices > 0, "no multicast object");
    return thing;
  }

  private long make(int device, int devices, long bytes) {
    long handle = ++machine.handlesMade;
    machine.things.put(handle, new Machine.Thing(device, devices, bytes, fabric));
    return handle;
  }

  @Override
  public long granularity(int device) {
    synchronized (machine) {
      call("granularity of GPU " + device);
      return GRANULARITY;
    }
  }

  @Override
  public long create(int device, long bytes) {
    synchronized (machine) {
      call("create %s bytes on GPU %s".formatted(bytes, device));
      require(bytes > 0 && bytes % GRANULARITY == 0, "size");
      return make(device, 0, bytes);
    }
  }

  @Override
  public Shareable.Descriptor export(long handle) {
    synchronized (machine) {
      call("export " + handle);
      thing(handle);
      var linker = Linker.nativeLinker();
      var create =
          linker.downcallHandle(
              linker.defaultLookup().findOrThrow("memfd_create"),
              FunctionDescriptor.of(
                  ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT));
      try (var arena = Arena.ofConfined()) {
        int descriptor = (int) create.invokeExact(arena.allocateFrom(machine.name), 0);
        assertThat(descriptor).isPositive();
        Files.writeString(file(descriptor), Long.toString(handle));
        return new Shareable.Descriptor(descriptor);
      } catch (Throwable e) {
        throw new AssertionError(e);
      }
    }
  }

  @Override
  public Shareable.Fabric exportToFabric(long handle) {
    synchronized (machine) {
      call("export %s to the fabric".formatted(handle));
      require(thing(handle).fabric, "not made for a fabric");
      return Shareable.Fabric.of(
          ByteBuffer.allocate(Shareable.Fabric.BYTES).putLong(handle).array());
    }
  }

  private static Path file(int descriptor) {
    return Path.of("/proc/self/fd/" + descriptor);
  }

  @Override
  public long importHandle(Shareable shareable) {
    synchronized (machine) {
      long handle =
          switch (shareable) {
            case Shareable.Descriptor(int number) -> read(number);
            case Shareable.Fabric exported -> ByteBuffer.wrap(exported.toBytes()).getLong();
          };
      var from = shareable instanceof Shareable.Fabric ? " from the fabric" : "";
      call("import %s%s".formatted(handle, from));
      thing(handle).handles++;
      return handle;
    }
  }

  private static long read(int descriptor) {
    try {
      return Long.parseLong(Files.readString(file(descriptor)));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public long reserve(long bytes, long alignment) {
    synchronized (machine) {
      call("reserve %s bytes, aligned to %s".formatted(bytes, alignment));
      long unit = Math.max(alignment, GRANULARITY);
      long address = Math.ceilDiv((++machine.addressesMade << 32) + 1, unit) * unit;
      machine.reserved.put(address, bytes);
      return address;
    }
  }

  @Override
  public void map(long address, long bytes, long handle) {
    synchronized (machine) {
      call("map " + handle);
      var thing = thing(handle);
      require(machine.reserved.getOrDefault(address, 0L) == bytes, "not reserved");
      require(!machine.mapped.containsKey(address) && bytes == thing.bytes, "mapped, or size");
      if (thing.devices > 0) {
        require(thing.added.size() == thing.devices, "waits for ever");
        require(bytes % multicastUnit(thing.devices) == 0, "size");
        require(address % multicastUnit(thing.devices) == 0, "address");
      }
      machine.mapped.put(address, handle);
    }
  }

  @Override
  public void allow(long address, long bytes, ImmutableList<Integer> devices) {
    synchronized (machine) {
      call("allow GPUs " + devices);
      require(machine.mapped.containsKey(address), "not mapped");
    }
  }

  @Override
  public void unmap(long address, long bytes) {
    synchronized (machine) {
      call("unmap " + machine.mapped.get(address));
      require(machine.mapped.containsKey(address), "not mapped");
      machine.mapped.remove(address);
    }
  }

  @Override
  public void unreserve(long address, long bytes) {
    synchronized (machine) {
      call("unreserve %s bytes".formatted(bytes));
      refuse(machine.mapped.containsKey(address), "still mapped");
      require(machine.reserved.remove(address) == bytes, "not reserved");
    }
  }

  @Override
  public void release(long handle) {
    synchronized (machine) {
      call("release " + handle);
      var thing = thing(handle);
      thing.handles--;
    }
  }

  private static long multicastUnit(int devices) {
    return devices % 2 == 0 ? 2 * GRANULARITY : PER_GPU;
  }

  @Override
  public long multicastGranularity(int devices, long bytes) {
    synchronized (machine) {
      call("multicast granularity for %s GPUs".formatted(devices));
      return multicastUnit(devices);
    }
  }

  @Override
  public long createMulticast(int devices, long bytes) {
    synchronized (machine) {
      call("create a multicast object of %s bytes for %s GPUs".formatted(bytes, devices));
      require(devices > 1 && bytes % multicastUnit(devices) == 0, "size");
      return make(-1, devices, bytes);
    }
  }

  @Override
  public void addDevice(long multicast, int device) {
    synchronized (machine) {
      call("add GPU %s to %s".formatted(device, multicast));
      var thing = multicast(multicast);
      require(thing.added.size() < thing.devices && thing.added.add(device), "too many");
    }
  }

  @Override
  public void bind(long multicast, long memory, long bytes) {
    synchronized (machine) {
      call("bind %s bytes of %s to %s".formatted(bytes, memory, multicast));
      var object = multicast(multicast);
      var thing = thing(memory);
      require(object.added.size() == object.devices, "waits for ever");
      require(object.added.contains(thing.device), "not added");
      require(bytes % multicastUnit(object.devices) == 0, "size");
      require(bytes <= object.bytes && bytes <= thing.bytes, "too large");
      require(object.bound.put(thing.device, bytes) == null, "bound twice");
    }
  }

  @Override
  public void unbind(long multicast, int device, long bytes) {
    synchronized (machine) {
      call("unbind GPU %s from %s".formatted(device, multicast));
      var bound = multicast(multicast).bound.remove(device);
      require(bound != null && bound == bytes, "not bound so");
    }
  }
}
