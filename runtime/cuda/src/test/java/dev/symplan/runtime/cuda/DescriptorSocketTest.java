package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.runtime.cuda.DescriptorSocket.Parcel;
import dev.symplan.runtime.cuda.DescriptorSocket.Received;
import dev.symplan.runtime.failure.RunException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Memory that has no name, shared between processes as a GPU's is. */
@Timeout(60)
class DescriptorSocketTest {
  private static final MemorySegment ONE = DescriptorSocket.note(new byte[] {1});

  private static final Duration TIMEOUT = Duration.ofSeconds(20);
  private static final int SIZE = 4096;

  /** Invites descriptors, changes what the first one stands for, and ends. */
  static final class Child {
    private Child() {}

    public static void main(String[] args) throws Exception {
      try (var socket = DescriptorSocket.open();
          var arena = Arena.ofConfined()) {
        System.out.println("at " + socket.path());
        var received = take(socket);
        var memory = map(received.descriptor(), arena);
        DescriptorSocket.closeDescriptor(received.descriptor());
        System.out.println("note " + new String(bytes(received), StandardCharsets.UTF_8));
        System.out.println("read " + memory.getString(0));
        memory.setString(100, "from the child");
        System.out.println("done");
      }
    }
  }

  private static Received take(DescriptorSocket socket) {
    var received = new ArrayList<Received>();
    socket.exchange(List.of(), 1, received::add, TIMEOUT);
    return received.getFirst();
  }

  private static byte[] bytes(Received received) {
    return received.note().toArray(ValueLayout.JAVA_BYTE);
  }

  private static void send(DescriptorSocket socket, Path to, byte[] note, int descriptor) {
    socket.exchange(
        List.of(new Parcel(to, DescriptorSocket.note(note), descriptor)), 0, _ -> {}, TIMEOUT);
  }

  private static MemorySegment map(int descriptor, Arena arena) throws IOException {
    try (var channel =
        FileChannel.open(
            Path.of("/proc/self/fd/" + descriptor),
            StandardOpenOption.READ,
            StandardOpenOption.WRITE)) {
      return channel.map(FileChannel.MapMode.READ_WRITE, 0, SIZE, arena);
    }
  }

  private static int anonymousFile() throws Throwable {
    var linker = Linker.nativeLinker();
    var create =
        linker.downcallHandle(
            linker.defaultLookup().findOrThrow("memfd_create"),
            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT));
    try (var arena = Arena.ofConfined()) {
      int descriptor = (int) create.invokeExact(arena.allocateFrom("symplan-test"), 0);
      assertThat(descriptor).isPositive();
      return descriptor;
    }
  }

  private static void assumeLinux() {
    assumeTrue(Files.isDirectory(Path.of("/proc/self/fd")), "only Linux has such descriptors");
  }

  @Test
  void processesShareMemory() throws Throwable {
    assumeLinux();
    int descriptor = anonymousFile();
    var child = ChildProcess.start(Child.class, Map.of());
    try (var socket = DescriptorSocket.open();
        var arena = Arena.ofConfined()) {
      var memory = map(descriptor, arena);
      memory.setString(0, "from the parent");
      var place = Path.of(child.line("at ").substring("at ".length()));
      send(socket, place, "arena of rank 1".getBytes(StandardCharsets.UTF_8), descriptor);
      assertThat(child.line("note ")).isEqualTo("note arena of rank 1");
      assertThat(child.line("read ")).isEqualTo("read from the parent");
      assertThat(child.line("done")).isEqualTo("done");
      assertThat(memory.getString(100)).isEqualTo("from the child");
      assertThat(child.process().waitFor()).isZero();
      assertThat(place.getParent()).doesNotExist();
    } finally {
      child.process().destroyForcibly();
      DescriptorSocket.closeDescriptor(descriptor);
    }
  }

  @Test
  void severalWaitInOrder() throws Throwable {
    assumeLinux();
    int descriptor = anonymousFile();
    try (var from = DescriptorSocket.open();
        var to = DescriptorSocket.open()) {
      for (byte i = 0; i < 8; i++) {
        send(from, to.path(), new byte[] {i}, descriptor);
      }
      for (byte i = 0; i < 8; i++) {
        var received = take(to);
        assertThat(bytes(received)).containsExactly(i);
        assertThat(received.descriptor()).isNotEqualTo(descriptor);
        DescriptorSocket.closeDescriptor(received.descriptor());
      }
    } finally {
      DescriptorSocket.closeDescriptor(descriptor);
    }
  }

  /** A socket holds 11 by default, so that nobody could send all before somebody takes. */
  @Test
  void manyExchangeAtOnce() throws Throwable {
    assumeLinux();
    int processes = 16;
    int descriptor = anonymousFile();
    var sockets = Stream.generate(DescriptorSocket::open).limit(processes).toList();
    try (var executor = Executors.newFixedThreadPool(processes)) {
      var taken =
          sockets.stream()
              .map(
                  own ->
                      executor.submit(
                          () -> {
                            var parcels =
                                sockets.stream()
                                    .filter(other -> other != own)
                                    .map(o -> new Parcel(o.path(), ONE, descriptor))
                                    .flatMap(parcel -> Stream.of(parcel, parcel))
                                    .toList();
                            var count = new AtomicInteger();
                            own.exchange(
                                parcels,
                                parcels.size(),
                                received -> {
                                  DescriptorSocket.closeDescriptor(received.descriptor());
                                  count.incrementAndGet();
                                },
                                TIMEOUT);
                            return count.get();
                          }))
              .toList();
      for (var each : taken) {
        assertThat(each.get()).isEqualTo(2 * (processes - 1));
      }
    } finally {
      sockets.forEach(DescriptorSocket::close);
      DescriptorSocket.closeDescriptor(descriptor);
    }
  }

  @Test
  void nobodyTakes() throws Throwable {
    assumeLinux();
    int descriptor = anonymousFile();
    try (var from = DescriptorSocket.open();
        var to = DescriptorSocket.open()) {
      var many = Collections.nCopies(10_000, new Parcel(to.path(), ONE, descriptor));
      assertThatThrownBy(() -> from.exchange(many, 0, _ -> {}, Duration.ofMillis(50)))
          .isInstanceOf(RunException.class)
          .hasMessage("no memory handle was taken within 50 ms");
    } finally {
      DescriptorSocket.closeDescriptor(descriptor);
    }
  }

  @Test
  void nothingComes() {
    assumeLinux();
    try (var socket = DescriptorSocket.open()) {
      assertThatThrownBy(() -> socket.exchange(List.of(), 1, _ -> {}, Duration.ofMillis(50)))
          .isInstanceOf(RunException.class)
          .hasMessage("no memory handle came within 50 ms");
    }
  }

  @Test
  void nobodyIsThere() throws Throwable {
    assumeLinux();
    int descriptor = anonymousFile();
    try (var socket = DescriptorSocket.open()) {
      var nowhere = socket.path().resolveSibling("gone");
      assertThatThrownBy(() -> send(socket, nowhere, new byte[] {1}, descriptor))
          .isInstanceOf(RunException.class)
          .hasMessage("sendmsg to %s failed: errno 2", nowhere);
    } finally {
      DescriptorSocket.closeDescriptor(descriptor);
    }
  }

  @Test
  void onlyTheUserMayEnter() throws IOException {
    assumeLinux();
    try (var socket = DescriptorSocket.open()) {
      assertThat(Files.getPosixFilePermissions(socket.path().resolveSibling(".").normalize()))
          .hasSize(3);
    }
  }
}
