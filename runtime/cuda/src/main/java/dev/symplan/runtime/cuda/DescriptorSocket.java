package dev.symplan.runtime.cuda;

import dev.symplan.runtime.cuda.library.SharedLibrary;
import dev.symplan.runtime.failure.RunException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/**
 * A Unix datagram socket that passes file descriptors between processes of one host ({@code
 * SCM_RIGHTS}), which Java's own sockets cannot do. For 64-bit Linux. Its place in the file system
 * is a new folder that only the user can enter.
 */
final class DescriptorSocket implements AutoCloseable {

  /**
   * A descriptor to be sent; the receiver gets one of its own for the same thing.
   *
   * @param note read-only; 256 bytes at most, not empty
   */
  record Parcel(Path to, MemorySegment note, int descriptor) {
    Parcel {
      if (note.byteSize() == 0 || note.byteSize() > MAX_NOTE) {
        throw new IllegalArgumentException("a note of " + note.byteSize() + " bytes");
      }
    }
  }

  /** A descriptor that came, with its note. */
  record Received(MemorySegment note, int descriptor) {}

  /** {@return a note of these bytes} */
  static MemorySegment note(byte[] bytes) {
    return MemorySegment.ofArray(bytes).asReadOnly();
  }

  private static final int AF_UNIX = 1;
  private static final int SOCK_DGRAM = 2;
  private static final int SOCK_CLOEXEC = 0x80000;
  private static final int SOL_SOCKET = 1;
  private static final int SCM_RIGHTS = 1;
  private static final int MSG_CMSG_CLOEXEC = 0x40000000;
  private static final int MSG_NOSIGNAL = 0x4000;
  private static final int MSG_DONTWAIT = 0x40;
  private static final int EAGAIN = 11;
  private static final short POLLIN = 1;
  private static final int MAX_PATH = 107;
  private static final int MAX_NOTE = 256;

  /** How long to wait for what comes before a socket that was full is tried again. */
  private static final Duration PAUSE = Duration.ofMillis(2);

  private static final StructLayout MESSAGE =
      MemoryLayout.structLayout(
          ValueLayout.ADDRESS.withName("name"),
          ValueLayout.JAVA_LONG.withName("name_length"),
          ValueLayout.ADDRESS.withName("parts"),
          ValueLayout.JAVA_LONG.withName("parts_count"),
          ValueLayout.ADDRESS.withName("control"),
          ValueLayout.JAVA_LONG.withName("control_length"),
          ValueLayout.JAVA_LONG.withName("flags"));

  /** One control message that holds one descriptor. */
  private static final StructLayout CONTROL =
      MemoryLayout.structLayout(
          ValueLayout.JAVA_LONG.withName("length"),
          ValueLayout.JAVA_INT.withName("level"),
          ValueLayout.JAVA_INT.withName("type"),
          ValueLayout.JAVA_INT.withName("descriptor"),
          MemoryLayout.paddingLayout(4));

  private static final long CONTROL_LENGTH = 20;

  private static final Linker LINKER = Linker.nativeLinker();
  private static final StructLayout STATE = Linker.Option.captureStateLayout();
  private static final VarHandle ERRNO =
      STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));

  private static final MethodHandle SOCKET =
      function("socket", ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT);
  private static final MethodHandle BIND =
      function("bind", ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT);
  private static final MethodHandle SEND =
      function("sendmsg", ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT);
  private static final MethodHandle RECEIVE =
      function("recvmsg", ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT);
  private static final MethodHandle POLL =
      function("poll", ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT);
  private static final MethodHandle CLOSE = function("close", ValueLayout.JAVA_INT);

  private final Path folder;
  private final Path path;
  private final int socket;

  private DescriptorSocket(Path folder, Path path, int socket) {
    this.folder = folder;
    this.path = path;
    this.socket = socket;
  }

  private static MethodHandle function(String name, MemoryLayout... arguments) {
    boolean countsBytes = name.endsWith("msg");
    return LINKER.downcallHandle(
        LINKER.defaultLookup().findOrThrow(name),
        FunctionDescriptor.of(
            countsBytes ? ValueLayout.JAVA_LONG : ValueLayout.JAVA_INT, arguments),
        Linker.Option.captureCallState("errno"));
  }

  /**
   * Opens a socket at a new place.
   *
   * @throws RunException when it cannot be made
   */
  static DescriptorSocket open() {
    try {
      var folder = Files.createTempDirectory("symplan");
      if (folder.toString().length() > MAX_PATH - 8) {
        Files.delete(folder);
        folder = Files.createTempDirectory(Path.of("/tmp"), "symplan");
      }
      var path = folder.resolve("fds");
      try (var arena = Arena.ofConfined()) {
        var state = arena.allocate(STATE);
        int socket = (int) SOCKET.invokeExact(state, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        check(socket, state, "socket");
        var opened = new DescriptorSocket(folder, path, socket);
        var name = address(path, arena);
        int status = (int) BIND.invokeExact(state, socket, name, (int) name.byteSize());
        if (status < 0) {
          opened.close();
        }
        check(status, state, "bind " + path);
        return opened;
      }
    } catch (IOException e) {
      throw new RunException("no socket can be made: " + e.getMessage(), e);
    } catch (Throwable e) {
      throw SharedLibrary.failed(e);
    }
  }

  /** {@return where others send to} */
  Path path() {
    return path;
  }

  private static MemorySegment address(Path path, Arena arena) {
    var text = path.toString().getBytes(StandardCharsets.UTF_8);
    if (text.length > MAX_PATH) {
      throw new RunException("the path of a socket is too long: " + path);
    }
    var address = arena.allocate(2 + MAX_PATH + 1, 8);
    address.set(ValueLayout.JAVA_SHORT, 0, (short) AF_UNIX);
    MemorySegment.copy(text, 0, address, ValueLayout.JAVA_BYTE, 2, text.length);
    return address;
  }

  /**
   * Sends all, and takes as many as others send here, in turns: a socket holds only a few until its
   * owner takes them, who may be sending as well.
   *
   * @param taker gets what comes; the descriptors are its to close
   * @param timeout how long nothing may come or go
   * @throws RunException when no process listens at a place, or nothing comes or goes in time
   */
  void exchange(List<Parcel> parcels, int expected, Consumer<Received> taker, Duration timeout) {
    var unsent = new ArrayDeque<>(parcels);
    int taken = 0;
    long end = System.nanoTime() + timeout.toNanos();
    while (!unsent.isEmpty() || taken < expected) {
      boolean moved = unsent.removeIf(this::send);
      if (taken < expected && isReady(moved ? Duration.ZERO : PAUSE)) {
        taker.accept(receive());
        taken++;
        moved = true;
      }
      long now = System.nanoTime();
      if (moved) {
        end = now + timeout.toNanos();
      } else if (now - end > 0) {
        throw new RunException(
            "no memory handle %s within %s ms"
                .formatted(unsent.isEmpty() ? "came" : "was taken", timeout.toMillis()));
      }
    }
  }

  /**
   * {@return whether it could be sent: what is full takes nothing}
   *
   * @throws RunException when no process listens there
   */
  private boolean send(Parcel parcel) {
    try (var arena = Arena.ofConfined()) {
      var state = arena.allocate(STATE);
      var control = arena.allocate(CONTROL);
      control.set(ValueLayout.JAVA_LONG, 0, CONTROL_LENGTH);
      control.set(ValueLayout.JAVA_INT, 8, SOL_SOCKET);
      control.set(ValueLayout.JAVA_INT, 12, SCM_RIGHTS);
      control.set(ValueLayout.JAVA_INT, 16, parcel.descriptor());
      var name = address(parcel.to(), arena);
      var note = arena.allocate(parcel.note().byteSize()).copyFrom(parcel.note());
      var message = message(arena, note, control);
      message.set(ValueLayout.ADDRESS, 0, name);
      message.set(ValueLayout.JAVA_INT, 8, (int) name.byteSize());
      long sent = (long) SEND.invokeExact(state, socket, message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && (int) ERRNO.get(state, 0L) == EAGAIN) {
        return false;
      }
      check(sent, state, "sendmsg to " + parcel.to());
      return true;
    } catch (Throwable e) {
      throw SharedLibrary.failed(e);
    }
  }

  private static MemorySegment message(Arena arena, MemorySegment data, MemorySegment control) {
    var part = arena.allocate(ValueLayout.ADDRESS, 2);
    part.set(ValueLayout.ADDRESS, 0, data);
    part.set(ValueLayout.JAVA_LONG, 8, data.byteSize());
    var message = arena.allocate(MESSAGE);
    message.set(ValueLayout.ADDRESS, 16, part);
    message.set(ValueLayout.JAVA_LONG, 24, 1);
    message.set(ValueLayout.ADDRESS, 32, control);
    message.set(ValueLayout.JAVA_LONG, 40, CONTROL.byteSize());
    return message;
  }

  /** {@return whether a descriptor comes in time} */
  private boolean isReady(Duration timeout) {
    try (var arena = Arena.ofConfined()) {
      var state = arena.allocate(STATE);
      var polled = arena.allocate(8, 4);
      polled.set(ValueLayout.JAVA_INT, 0, socket);
      polled.set(ValueLayout.JAVA_SHORT, 4, POLLIN);
      int ready = (int) POLL.invokeExact(state, polled, 1L, (int) timeout.toMillis());
      check(ready, state, "poll");
      return ready > 0;
    } catch (Throwable e) {
      throw SharedLibrary.failed(e);
    }
  }

  /** {@return the next descriptor; it is the caller's to close} */
  private Received receive() {
    try (var arena = Arena.ofConfined()) {
      var state = arena.allocate(STATE);
      var data = arena.allocate(MAX_NOTE);
      var control = arena.allocate(CONTROL);
      var message = message(arena, data, control);
      long length = (long) RECEIVE.invokeExact(state, socket, message, MSG_CMSG_CLOEXEC);
      check(length, state, "recvmsg");
      if (message.get(ValueLayout.JAVA_LONG, 40) < CONTROL_LENGTH
          || control.get(ValueLayout.JAVA_INT, 8) != SOL_SOCKET
          || control.get(ValueLayout.JAVA_INT, 12) != SCM_RIGHTS) {
        throw new RunException("a message came without a descriptor");
      }
      var note = data.asSlice(0, length).toArray(ValueLayout.JAVA_BYTE);
      return new Received(note(note), control.get(ValueLayout.JAVA_INT, 16));
    } catch (Throwable e) {
      throw SharedLibrary.failed(e);
    }
  }

  /** Closes a descriptor, as the system knows it. */
  static void closeDescriptor(int descriptor) {
    try (var arena = Arena.ofConfined()) {
      var state = arena.allocate(STATE);
      int status = (int) CLOSE.invokeExact(state, descriptor);
      check(status, state, "close");
    } catch (Throwable e) {
      throw SharedLibrary.failed(e);
    }
  }

  private static void check(long status, MemorySegment state, String call) {
    if (status < 0) {
      throw new RunException("%s failed: errno %s".formatted(call, (int) ERRNO.get(state, 0L)));
    }
  }

  @Override
  public void close() {
    closeDescriptor(socket);
    for (var file : Arrays.asList(path, folder)) {
      try {
        Files.deleteIfExists(file);
      } catch (IOException e) {
        throw new RunException("cannot remove " + file + ": " + e.getMessage(), e);
      }
    }
  }
}
