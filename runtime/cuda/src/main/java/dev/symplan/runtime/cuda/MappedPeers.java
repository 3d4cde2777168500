package dev.symplan.runtime.cuda;

import com.google.common.collect.HashBasedTable;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.ImmutableSortedSet;
import com.google.common.collect.Table;
import dev.symplan.runtime.launch.World;
import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import org.bytedeco.javacpp.Pointer;

/**
 * The memory of ranks in other processes, mapped into this one: each process sends the handles of
 * its own to the others.
 */
final class MappedPeers implements Peers {

  /** A GPU's own memory, in blocks that others can map and multicast objects can be bound to. */
  static final class Own implements Sharing {
    private final int device;
    private final ImmutableList<Integer> devices;
    private final MulticastTeams teams;
    private final MemoryDriver driver;
    private final Map<Region, MappedBlock> blocks = new EnumMap<>(Region.class);

    /**
     * @param devices the GPUs of this process that reach it by the same addresses
     * @param teams of the ranks of all processes
     */
    Own(int device, ImmutableList<Integer> devices, MulticastTeams teams, MemoryDriver driver) {
      this.device = device;
      this.devices = devices;
      this.teams = teams;
      this.driver = driver;
    }

    @Override
    public Pointer allocate(Region region, long bytes, Check check) {
      var units =
          switch (region) {
            case ARENA -> teams.granularities(bytes, driver);
            case FLAGS -> ImmutableSet.<Long>of();
          };
      var block = MappedBlock.allocate(device, bytes, units, devices, driver);
      blocks.put(region, block);
      return new DevicePointer(block.address());
    }

    @Override
    public void free(Pointer memory, Check check) {
      blocks.values().stream()
          .filter(block -> block.address() == memory.address())
          .forEach(block -> block.free(driver));
    }

    long base(Region region) {
      return block(region).address();
    }

    private MappedBlock block(Region region) {
      return Objects.requireNonNull(blocks.get(region));
    }

    /** {@return the part in multicast of a rank with this memory} */
    MulticastMember member(int rank) {
      return new MulticastMember(rank, device, teams, block(Region.ARENA), driver);
    }
  }

  private final int rank;
  private final ImmutableSortedSet<Integer> peers;
  private final Own own;
  private final Table<Integer, Region, MappedBlock> mapped = HashBasedTable.create();

  /**
   * @param peers whose memory this rank reaches, and who reach its own
   */
  MappedPeers(int rank, ImmutableSortedSet<Integer> peers, Own own) {
    this.rank = rank;
    this.peers = peers;
    this.own = own;
  }

  /**
   * Maps the memory of the peers; all ranks call this at once, each in the thread of its GPU.
   *
   * @param timeout how long to wait for a handle that was promised
   * @throws dev.symplan.runtime.failure.RunException when the handles cannot be passed or mapped
   */
  void exchange(World world, Duration timeout) {
    int expected = peers.size() * Region.values().length;
    HandleExchange.exchange(world, "memory handles", this::export, expected, this::take, timeout);
  }

  private void export(HandleExchange.Outbox outbox) {
    for (var region : Region.values()) {
      var block = own.block(region);
      outbox.add(peers, region.ordinal(), block.bytes(), block.handle(), own.driver);
    }
  }

  private void take(int from, int label, long bytes, Shareable exported) {
    mapped.put(
        from, Region.values()[label], MappedBlock.of(exported, bytes, own.device, own.driver));
  }

  @Override
  public long base(int of, Region region) {
    if (of == rank) {
      return own.base(region);
    }
    var block = mapped.get(of, region);
    if (block == null) {
      throw new IllegalStateException(
          "rank %s has no address for the memory of rank %s".formatted(rank, of));
    }
    return block.address();
  }

  /** Ends the access to the others' memory, not to its own; by the thread of the GPU. */
  void close() {
    Release.all(
        mapped.values().stream().<Runnable>map(block -> () -> block.free(own.driver)).toList());
    mapped.clear();
  }
}
