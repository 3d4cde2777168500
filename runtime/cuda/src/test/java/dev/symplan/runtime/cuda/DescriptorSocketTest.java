package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.runtime.RunException;
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
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Memory that has no name, shared between processes as a GPU's is. */
@Timeout(60)
class DescriptorSocketTest {
  private static final Duration PATIENCE = Duration.ofSeconds(20);
  private static final int SIZE = 4096;

  /** Invites descriptors, changes what the first one stands for, and ends. */
  static final class Child {
    private Child() {}

    public static void main(String[] args) throws Exception {
      try (var socket = DescriptorSocket.open();
          var arena = Arena.ofConfined()) {
        System.out.println("at " + socket.path());
        var received = socket.receive(PATIENCE);
        var memory = map(received.descriptor(), arena);
        DescriptorSocket.closeDescriptor(received.descriptor());
        System.out.println("note " + new String(received.note(), StandardCharsets.UTF_8));
        System.out.println("read " + memory.getString(0));
        memory.setString(100, "from the child");
        System.out.println("done");
      }
    }
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
      socket.send(place, "arena of rank 1".getBytes(StandardCharsets.UTF_8), descriptor);
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
        from.send(to.path(), new byte[] {i}, descriptor);
      }
      for (byte i = 0; i < 8; i++) {
        var received = to.receive(PATIENCE);
        assertThat(received.note()).containsExactly(i);
        assertThat(received.descriptor()).isNotEqualTo(descriptor);
        DescriptorSocket.closeDescriptor(received.descriptor());
      }
    } finally {
      DescriptorSocket.closeDescriptor(descriptor);
    }
  }

  @Test
  void nothingComes() {
    assumeLinux();
    try (var socket = DescriptorSocket.open()) {
      assertThatThrownBy(() -> socket.receive(Duration.ofMillis(50)))
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
      assertThatThrownBy(() -> socket.send(nowhere, new byte[] {1}, descriptor))
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
