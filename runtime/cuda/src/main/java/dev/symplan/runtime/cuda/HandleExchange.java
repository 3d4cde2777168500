package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableSortedSet;
import com.google.common.collect.Sets;
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
import java.util.Set;
import java.util.UUID;
import java.util.function.Consumer;

/**
 * Passes handles of memory between the processes of a run: within a host as file descriptors over a
 * socket, between hosts as fabric handles with what all processes tell each other.
 */
final class HandleExchange {
  private static final int TOKEN_BYTES = 2 * Long.BYTES;
  private static final int NOTE_BYTES = TOKEN_BYTES + 2 * Integer.BYTES + Long.BYTES;
  private static final int SENT_BYTES = 2 * Integer.BYTES + Long.BYTES + Shareable.Fabric.BYTES;
  private static final byte INVITATION = 1;
  private static final byte REFUSAL = 0;

  /**
   * A handle that goes to another rank.
   *
   * @param label the kind of handle, as sender and receiver count
   * @param bytes of what it stands for
   * @param exported several may have the same
   */
  private record Sent<T extends Shareable>(int to, int label, long bytes, T exported) {}

  /** The handles that a rank sends. */
  static final class Outbox {
    private final ImmutableSortedSet<Integer> ranksHere;
    private final List<Sent<Shareable.Descriptor>> here = new ArrayList<>();
    private final List<Sent<Shareable.Fabric>> elsewhere = new ArrayList<>();

    private Outbox(World world) {
      this.ranksHere = world.ranksHere();
    }

    /**
     * Adds a handle for each of some ranks.
     *
     * @param label the kind of handle, as sender and receiver count
     * @param bytes of what it stands for
     */
    void add(Set<Integer> to, int label, long bytes, long handle, MemoryDriver driver) {
      var near = Sets.intersection(to, ranksHere);
      if (!near.isEmpty()) {
        var exported = driver.export(handle);
        near.forEach(rank -> here.add(new Sent<>(rank, label, bytes, exported)));
      }
      var far = Sets.difference(to, ranksHere);
      if (!far.isEmpty()) {
        var exported = driver.exportToFabric(handle);
        far.forEach(rank -> elsewhere.add(new Sent<>(rank, label, bytes, exported)));
      }
    }

    private void close() {
      here.stream()
          .map(sent -> sent.exported().number())
          .distinct()
          .forEach(DescriptorSocket::closeDescriptor);
    }
  }

  /** The receiver of a handle that came. */
  @FunctionalInterface
  interface Taker {
    /**
     * @param exported a descriptor is closed then
     */
    void take(int from, int label, long bytes, Shareable exported);
  }

  /**
   * The message that a process sends to the others before they send it handles.
   *
   * @param sent its own handles that go to other hosts
   */
  private record Invitation(Path socket, UUID token, List<Sent<Shareable.Fabric>> sent) {
    /** {@return the answer of a process that can take no handles} */
    static byte[] refusal(String reason) {
      return Bytes.concat(new byte[] {REFUSAL}, reason.getBytes(StandardCharsets.UTF_8));
    }

    byte[] toBytes() {
      var path = socket.toString().getBytes(StandardCharsets.UTF_8);
      var buffer =
          ByteBuffer.allocate(
              1 + TOKEN_BYTES + Integer.BYTES + path.length + sent.size() * SENT_BYTES);
      put(buffer.put(INVITATION), token).putInt(path.length).put(path);
      for (var handle : sent) {
        buffer.putInt(handle.to()).putInt(handle.label()).putLong(handle.bytes());
        buffer.put(handle.exported().toBytes());
      }
      return buffer.array();
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
      var path = new byte[buffer.getInt()];
      buffer.get(path);
      var sent = new ArrayList<Sent<Shareable.Fabric>>();
      while (buffer.hasRemaining()) {
        int to = buffer.getInt();
        int label = buffer.getInt();
        long size = buffer.getLong();
        var exported = new byte[Shareable.Fabric.BYTES];
        buffer.get(exported);
        sent.add(new Sent<>(to, label, size, Shareable.Fabric.of(exported)));
      }
      return new Invitation(Path.of(new String(path, StandardCharsets.UTF_8)), token, sent);
    }
  }

  private HandleExchange() {}

  /**
   * Sends handles to other ranks and takes theirs; all ranks call this at once.
   *
   * @param what its name, for people; the same on all ranks
   * @param source adds what is sent; descriptors are closed here
   * @param expected how many come
   * @param timeout how long to wait for a handle that was promised
   * @throws RunException when the handles cannot be passed, by any rank
   */
  static void exchange(
      World world,
      String what,
      Consumer<Outbox> source,
      int expected,
      Taker taker,
      Duration timeout) {
    var outbox = new Outbox(world);
    var given = what + ", where they go to";
    try {
      DescriptorSocket opened;
      try {
        source.accept(outbox);
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
            world
                .gather(given, new Invitation(socket.path(), token, outbox.elsewhere).toBytes())
                .stream()
                .map(Invitation::of)
                .toList();
        var parcels = new ArrayList<Parcel>();
        for (var handle : outbox.here) {
          var to = invitations.get(handle.to());
          parcels.add(
              new Parcel(to.socket(), note(to, world.rank(), handle), handle.exported().number()));
        }
        // Who fails to take a handle goes on, so that others do not wait for those that it sends.
        var failures = new ArrayList<RunException>();
        int fromElsewhere = 0;
        for (int rank = 0; rank < invitations.size(); rank++) {
          for (var handle : invitations.get(rank).sent()) {
            if (handle.to() == world.rank()) {
              fromElsewhere++;
              int from = rank;
              attempt(
                  () -> taker.take(from, handle.label(), handle.bytes(), handle.exported()),
                  failures);
            }
          }
        }
        socket.exchange(
            parcels,
            expected - fromElsewhere,
            received -> attempt(() -> take(received, token, taker), failures),
            timeout);
        if (!failures.isEmpty()) {
          throw failures.getFirst();
        }
      }
    } finally {
      outbox.close();
    }
  }

  private static void attempt(Runnable take, List<RunException> failures) {
    try {
      take.run();
    } catch (RunException e) {
      failures.add(e);
    }
  }

  private static MemorySegment note(Invitation to, int rank, Sent<Shareable.Descriptor> handle) {
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
      taker.take(
          note.getInt(),
          note.getInt(),
          note.getLong(),
          new Shareable.Descriptor(received.descriptor()));
    } finally {
      DescriptorSocket.closeDescriptor(received.descriptor());
    }
  }
}
