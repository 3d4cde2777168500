package dev.symplan.runtime.cuda;

import com.google.common.collect.HashBasedTable;
import com.google.common.collect.Table;
import com.google.common.primitives.Bytes;
import com.google.common.primitives.ImmutableLongArray;
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
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import org.bytedeco.javacpp.Pointer;

/**
 * The memory of ranks in other processes of this host, mapped into this one: each process sends the
 * handles of its own to the others as file descriptors.
 */
final class MappedPeers implements Peers {
  private static final int TOKEN_BYTES = 2 * Long.BYTES;
  private static final int NOTE_BYTES = TOKEN_BYTES + 2 * Integer.BYTES;
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
  private record Invitation(Path socket, UUID token, ImmutableLongArray bytes) {
    /** {@return what a process gives that can take no handles} */
    static byte[] refusal(String reason) {
      return Bytes.concat(new byte[] {REFUSAL}, reason.getBytes(StandardCharsets.UTF_8));
    }

    byte[] toBytes() {
      var path = socket.toString().getBytes(StandardCharsets.UTF_8);
      var buffer = ByteBuffer.allocate(1 + TOKEN_BYTES + bytes.length() * Long.BYTES + path.length);
      put(buffer.put(INVITATION), token);
      bytes.forEach(buffer::putLong);
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
      var token = readToken(buffer);
      var sizes = ImmutableLongArray.builder(Region.values().length);
      for (var _ : Region.values()) {
        sizes.add(buffer.getLong());
      }
      return new Invitation(
          Path.of(StandardCharsets.UTF_8.decode(buffer).toString()), token, sizes.build());
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
    var token = UUID.randomUUID();
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

  private Invitation invitation(DescriptorSocket socket, UUID token) {
    var sizes = Arrays.stream(Region.values()).mapToLong(region -> own.block(region).bytes());
    return new Invitation(socket.path(), token, ImmutableLongArray.copyOf(sizes));
  }

  private void exchange(
      List<Invitation> invitations, UUID token, DescriptorSocket socket, Duration timeout) {
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

  private MemorySegment note(Invitation to, Region region) {
    var note = put(ByteBuffer.allocate(NOTE_BYTES), to.token());
    return DescriptorSocket.note(note.putInt(rank).putInt(region.ordinal()).array());
  }

  private static ByteBuffer put(ByteBuffer buffer, UUID token) {
    return buffer.putLong(token.getMostSignificantBits()).putLong(token.getLeastSignificantBits());
  }

  private static UUID readToken(ByteBuffer buffer) {
    return new UUID(buffer.getLong(), buffer.getLong());
  }

  private void take(Received received, List<Invitation> invitations, UUID token) {
    try {
      var note = checked(received.note(), token);
      int peer = note.getInt();
      var region = Region.values()[note.getInt()];
      long bytes = invitations.get(peer).bytes().get(region.ordinal());
      mapped.put(peer, region, MappedBlock.of(received.descriptor(), bytes, own.device, check));
    } finally {
      DescriptorSocket.closeDescriptor(received.descriptor());
    }
  }

  /** Checks that a handle comes from a process of this run, and leaves the rest of its note. */
  private static ByteBuffer checked(MemorySegment note, UUID token) {
    var buffer = note.asByteBuffer();
    if (note.byteSize() != NOTE_BYTES || !readToken(buffer).equals(token)) {
      throw new RunException("a memory handle came from a process outside this run");
    }
    return buffer;
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
