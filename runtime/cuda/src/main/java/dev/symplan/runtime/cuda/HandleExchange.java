package dev.symplan.runtime.cuda;

import com.google.common.primitives.Bytes;
import dev.symplan.runtime.cuda.DescriptorSocket.Parcel;
import dev.symplan.runtime.cuda.DescriptorSocket.Received;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.World;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.function.Consumer;

/** Passes handles of memory between the processes of a run, as file descriptors. */
final class HandleExchange {
  private static final int TOKEN_BYTES = 2 * Long.BYTES;
  private static final int NOTE_BYTES = TOKEN_BYTES + 2 * Integer.BYTES + Long.BYTES;
  private static final byte INVITATION = 1;
  private static final byte REFUSAL = 0;

  /**
   * A handle that goes to another rank.
   *
   * @param label what it is, as sender and receiver count
   * @param bytes of what it stands for
   * @param descriptor several may have the same
   */
  record Sent(int to, int label, long bytes, int descriptor) {}

  /** What is done with a handle that came. */
  @FunctionalInterface
  interface Taker {
    /**
     * @param descriptor is closed then
     */
    void take(int from, int label, long bytes, int descriptor);
  }

  /** The message that a process sends to the others before they send it handles. */
  private record Invitation(Path socket, UUID token) {
    /** {@return what a process gives that can take no handles} */
    static byte[] refusal(String reason) {
      return Bytes.concat(new byte[] {REFUSAL}, reason.getBytes(StandardCharsets.UTF_8));
    }

    byte[] toBytes() {
      var path = socket.toString().getBytes(StandardCharsets.UTF_8);
      var buffer = ByteBuffer.allocate(1 + TOKEN_BYTES + path.length);
      return put(buffer.put(INVITATION), token).put(path).array();
    }

    /**
     * @throws RunException when it is a refusal
     */
    static Invitation of(byte[] bytes) {
      var buffer = ByteBuffer.wrap(bytes);
      if (buffer.get() == REFUSAL) {
        throw new RunException(StandardCharsets.UTF_8.decode(buffer).toString());
      }
      var token = readToken(buffer);
      return new Invitation(Path.of(StandardCharsets.UTF_8.decode(buffer).toString()), token);
    }
  }

  private HandleExchange() {}

  /**
   * Sends handles to other ranks and takes theirs; all ranks call this at once.
   *
   * @param what its name, for people; the same on all ranks
   * @param source adds what is sent; the descriptors are closed here
   * @param expected how many come
   * @param timeout how long to wait for a handle that was promised
   * @throws RunException when the handles cannot be passed, by any rank
   */
  static void exchange(
      World world,
      String what,
      Consumer<List<Sent>> source,
      int expected,
      Taker taker,
      Duration timeout) {
    var sent = new ArrayList<Sent>();
    var given = what + ", where they go to";
    try {
      DescriptorSocket opened;
      try {
        source.accept(sent);
        opened = DescriptorSocket.open();
      } catch (RunException e) {
        // The others need not wait for this rank.
        var _ =
            world.gather(
                given, Invitation.refusal("rank %s: %s".formatted(world.rank(), e.getMessage())));
        throw e;
      }
      try (var socket = opened) {
        var token = UUID.randomUUID();
        var invitations =
            world.gather(given, new Invitation(socket.path(), token).toBytes()).stream()
                .map(Invitation::of)
                .toList();
        var parcels = new ArrayList<Parcel>();
        for (var handle : sent) {
          var to = invitations.get(handle.to());
          parcels.add(new Parcel(to.socket(), note(to, world.rank(), handle), handle.descriptor()));
        }
        // Who fails to take a handle goes on, so that others do not wait for those that it sends.
        var failures = new ArrayList<RunException>();
        socket.exchange(
            parcels,
            expected,
            received -> {
              try {
                take(received, token, taker);
              } catch (RunException e) {
                failures.add(e);
              }
            },
            timeout);
        if (!failures.isEmpty()) {
          throw failures.getFirst();
        }
      }
    } finally {
      sent.stream().map(Sent::descriptor).distinct().forEach(DescriptorSocket::closeDescriptor);
    }
  }

  private static MemorySegment note(Invitation to, int rank, Sent handle) {
    var note = put(ByteBuffer.allocate(NOTE_BYTES), to.token());
    return DescriptorSocket.note(
        note.putInt(rank).putInt(handle.label()).putLong(handle.bytes()).array());
  }

  private static ByteBuffer put(ByteBuffer buffer, UUID token) {
    return buffer.putLong(token.getMostSignificantBits()).putLong(token.getLeastSignificantBits());
  }

  private static UUID readToken(ByteBuffer buffer) {
    return new UUID(buffer.getLong(), buffer.getLong());
  }

  private static void take(Received received, UUID token, Taker taker) {
    try {
      var note = received.note().asByteBuffer();
      if (received.note().byteSize() != NOTE_BYTES || !readToken(note).equals(token)) {
        throw new RunException("a memory handle came from a process outside this run");
      }
      taker.take(note.getInt(), note.getInt(), note.getLong(), received.descriptor());
    } finally {
      DescriptorSocket.closeDescriptor(received.descriptor());
    }
  }
}
