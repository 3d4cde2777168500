package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableSortedMap;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Transfers;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.runtime.failure.RunException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Objects;

/**
 * The memory that one rank shares with the processes of its host: its symmetric arena, its staged
 * operands, and a count for each barrier, which only the rank itself writes. It is a file that all
 * map.
 */
final class SharedMemory {
  private static final Path MEMORY = Path.of("/dev/shm");
  private static final long PAGE = 4096;

  /** Counts of different barriers are in different lines of the cache. */
  private static final long LINE = 64;

  private static final VarHandle COUNT = ValueLayout.JAVA_LONG.varHandle();

  private final MemorySegment symmetric;
  private final MemorySegment counts;
  private final ImmutableSortedMap<StreamKind, MemorySegment> staging;

  private SharedMemory(Layout layout, MemorySegment memory) {
    this.counts = memory.asSlice(0, layout.countBytes());
    this.symmetric = memory.asSlice(pages(layout.countBytes()), layout.symmetric());
    var buffers = ImmutableSortedMap.<StreamKind, MemorySegment>naturalOrder();
    long at = pages(layout.countBytes()) + pages(layout.symmetric());
    for (var buffer : layout.staging().entrySet()) {
      buffers.put(buffer.getKey(), memory.asSlice(at, buffer.getValue()));
      at += pages(buffer.getValue());
    }
    this.staging = buffers.buildOrThrow();
  }

  /** The size of a rank's shared memory, in bytes; all processes derive it from the plan. */
  record Layout(int barriers, long symmetric, ImmutableSortedMap<StreamKind, Long> staging) {
    static Layout of(Executable executable, Transfers transfers, int rank, int barriers) {
      return new Layout(barriers, executable.symmetricBytes(), Staging.sizes(transfers, rank));
    }

    private long countBytes() {
      return barriers * LINE;
    }

    private long bytes() {
      return pages(countBytes())
          + pages(symmetric)
          + staging.values().stream().mapToLong(SharedMemory::pages).sum();
    }
  }

  private static long pages(long bytes) {
    return Math.ceilDiv(bytes, PAGE) * PAGE;
  }

  /**
   * {@return a new file for a rank's memory, in a folder that only the user can enter} Whoever asks
   * removes both.
   *
   * @throws RunException when the space does not suffice
   */
  static Path newFile(Layout layout) {
    try {
      var folder =
          hasRoom(MEMORY, layout.bytes())
              ? Files.createTempDirectory(MEMORY, "symplan-")
              : Files.createTempDirectory("symplan-");
      return Files.createFile(folder.resolve("rank"));
    } catch (IOException e) {
      throw new RunException("no file for shared memory: " + e.getMessage(), e);
    }
  }

  private static boolean hasRoom(Path folder, long bytes) throws IOException {
    return Files.isWritable(folder) && Files.getFileStore(folder).getUsableSpace() > bytes;
  }

  /** Removes a file and its folder; those who have mapped it keep the memory. */
  static void remove(Path file) {
    try {
      Files.deleteIfExists(file);
      Files.deleteIfExists(Objects.requireNonNull(file.getParent()));
    } catch (IOException e) {
      throw new RunException("'%s' cannot be removed: %s".formatted(file, e.getMessage()), e);
    }
  }

  /**
   * {@return the memory of a rank in a file}
   *
   * @param owner until when it is mapped
   * @throws RunException when it cannot be mapped
   */
  static SharedMemory map(Path file, Layout layout, Arena owner) {
    try (var channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      return new SharedMemory(
          layout,
          channel.map(FileChannel.MapMode.READ_WRITE, 0, Math.max(PAGE, layout.bytes()), owner));
    } catch (IOException e) {
      throw new RunException("shared memory '%s': %s".formatted(file, e.getMessage()), e);
    }
  }

  /** Poisons all but the counts, as the rank that it belongs to. */
  void poison() {
    try {
      HostMemory.poison(symmetric);
      staging.values().forEach(HostMemory::poison);
    } catch (InternalError e) {
      // Java throws this when the file system of mapped memory is full.
      throw new RunException("no room for shared memory", e);
    }
  }

  MemorySegment symmetric() {
    return symmetric;
  }

  MemorySegment staging(StreamKind stream) {
    return Objects.requireNonNull(staging.get(stream));
  }

  /** Says that the rank is at a barrier again; what it wrote before is then visible. */
  void arrive(int barrier, long count) {
    COUNT.setRelease(counts, barrier * LINE, count);
  }

  /** {@return how often the rank was at a barrier} */
  long arrivals(int barrier) {
    return (long) COUNT.getAcquire(counts, barrier * LINE);
  }
}
