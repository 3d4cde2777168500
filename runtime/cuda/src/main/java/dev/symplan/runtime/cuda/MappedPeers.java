package dev.symplan.runtime.cuda;

import com.google.common.collect.HashBasedTable;
import com.google.common.collect.Table;
import com.google.common.primitives.Bytes;
import dev.symplan.runtime.cuda.DescriptorSocket.Parcel;
import dev.symplan.runtime.cuda.DescriptorSocket.Received;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.World;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.bytedeco.javacpp.Pointer;

/**
 * The memory of ranks in other processes of this host, mapped into this one: each process sends the
 * handles of its own to the others as file descriptors.
 */
final class MappedPeers implements Peers {
  private static final int TOKEN = 16;
  private static final byte INVITATION = 1;
  private static final byte REFUSAL = 0;
  private static final String GIVEN = "where memory handles go to";

  /** A GPU's own memory, in blocks that other processes can map. */
  static final class Own implements Sharing {
    private final int device;
    private final Map<Region, MappedBlock> blocks = new EnumMap<>(Region.class);

    Own(int device) {
      this.device = device;
    }

    @Override
    public Pointer allocate(Region region, long bytes, Check check) {
      var block = MappedBlock.allocate(device, bytes, check);
      blocks.put(region, block);
      return new DevicePointer(block.address());
    }

    @Override
    public void free(Pointer memory, Check check) {
      blocks.values().stream()
          .filter(block -> block.address() == memory.address())
          .forEach(block -> block.free(check));
    }

    long base(Region region) {
      return block(region).address();
    }

    private MappedBlock block(Region region) {
      return Objects.requireNonNull(blocks.get(region));
    }
  }

  /** The message that a process sends to the others before it sends them handles. */
  private record Invitation(Path socket, byte[] token, long[] bytes) {
    /** {@return what a process gives that can take no handles} */
    static byte[] refusal(String reason) {
      return Bytes.concat(new byte[] {REFUSAL}, reason.getBytes(StandardCharsets.UTF_8));
    }

    byte[] toBytes() {
      var path = socket.toString().getBytes(StandardCharsets.UTF_8);
      var buffer = ByteBuffer.allocate(1 + TOKEN + bytes.length * Long.BYTES + path.length);
      buffer.put(INVITATION).put(token);
      for (long size : bytes) {
        buffer.putLong(size);
      }
      return buffer.put(path).array();
    }

    /**
     * @throws RunException when it is a refusal
     */
    static Invitation of(byte[] bytes) {
      var buffer = ByteBuffer.wrap(bytes);
      if (buffer.get() == REFUSAL) {
        throw new RunException(StandardCharsets.UTF_8.decode(buffer).toString());
      }
      var token = new byte[TOKEN];
      buffer.get(token);
      var sizes = new long[Region.values().length];
      for (int i = 0; i < sizes.length; i++) {
        sizes[i] = buffer.getLong();
      }
      return new Invitation(
          Path.of(StandardCharsets.UTF_8.decode(buffer).toString()), token, sizes);
    }
  }

  private final int rank;
  private final Own own;
  private final Check check;
  private final Table<Integer, Region, MappedBlock> mapped = HashBasedTable.create();

  MappedPeers(int rank, Own own, Check check) {
    this.rank = rank;
    this.own = own;
    this.check = check;
  }

  /**
   * Maps all ranks' memory; all ranks call this at once, each in the thread of its GPU.
   *
   * @param timeout how long to wait for a handle that was promised
   * @throws RunException when the handles cannot be passed or mapped
   */
  void exchange(World world, Duration timeout) {
    var token = new byte[TOKEN];
    new SecureRandom().nextBytes(token);
    DescriptorSocket opened;
    try {
      opened = DescriptorSocket.open();
    } catch (RunException e) {
      // The others need not wait for this rank.
      var _ =
          world.gather(GIVEN, Invitation.refusal("rank %d: %s".formatted(rank, e.getMessage())));
      throw e;
    }
    try (var socket = opened) {
      var given = world.gather(GIVEN, invitation(socket, token).toBytes());
      exchange(given.stream().map(Invitation::of).toList(), token, socket, timeout);
    }
  }

  private Invitation invitation(DescriptorSocket socket, byte[] token) {
    var sizes = new long[Region.values().length];
    for (var region : Region.values()) {
      sizes[region.ordinal()] = own.block(region).bytes();
    }
    return new Invitation(socket.path(), token, sizes);
  }

  private void exchange(
      List<Invitation> invitations, byte[] token, DescriptorSocket socket, Duration timeout) {
    var parcels = new ArrayList<Parcel>();
    var descriptors = new ArrayList<Integer>();
    try {
      for (var region : Region.values()) {
        int descriptor = own.block(region).export(check);
        descriptors.add(descriptor);
        for (int peer = 0; peer < invitations.size(); peer++) {
          if (peer != rank) {
            var to = invitations.get(peer);
            parcels.add(new Parcel(to.socket(), note(to, region), descriptor));
          }
        }
      }
      socket.exchange(
          parcels, parcels.size(), received -> take(received, invitations, token), timeout);
    } finally {
      descriptors.forEach(DescriptorSocket::closeDescriptor);
    }
  }

  private byte[] note(Invitation to, Region region) {
    return ByteBuffer.allocate(TOKEN + 2 * Integer.BYTES)
        .put(to.token())
        .putInt(rank)
        .putInt(region.ordinal())
        .array();
  }

  private void take(Received received, List<Invitation> invitations, byte[] token) {
    try {
      var note = note(received.note(), token);
      int peer = note.getInt();
      var region = Region.values()[note.getInt()];
      long bytes = invitations.get(peer).bytes()[region.ordinal()];
      mapped.put(peer, region, MappedBlock.of(received.descriptor(), bytes, own.device, check));
    } finally {
      DescriptorSocket.closeDescriptor(received.descriptor());
    }
  }

  /** Checks that a handle comes from a process of this run, and leaves the rest of its note. */
  private static ByteBuffer note(byte[] bytes, byte[] token) {
    var buffer = ByteBuffer.wrap(bytes);
    if (bytes.length != TOKEN + 2 * Integer.BYTES
        || !ByteBuffer.wrap(token).equals(buffer.slice(0, TOKEN))) {
      throw new RunException("a memory handle came from a process outside this run");
    }
    return buffer.position(TOKEN);
  }

  @Override
  public long base(int of, Region region) {
    return of == rank ? own.base(region) : Objects.requireNonNull(mapped.get(of, region)).address();
  }

  /** Ends the access to the others' memory, not to its own; by the thread of the GPU. */
  void close() {
    Release.all(mapped.values().stream().<Runnable>map(block -> () -> block.free(check)).toList());
    mapped.clear();
  }
}
