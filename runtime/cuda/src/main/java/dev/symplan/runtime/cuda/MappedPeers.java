package dev.symplan.runtime.cuda;

import com.google.common.collect.HashBasedTable;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Sets;
import com.google.common.collect.Table;
import dev.symplan.runtime.launch.World;
import java.time.Duration;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.bytedeco.javacpp.Pointer;

/**
 * The memory of ranks in other processes of this host, mapped into this one: each process sends the
 * handles of its own to the others.
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
  private final Own own;
  private final Table<Integer, Region, MappedBlock> mapped = HashBasedTable.create();

  MappedPeers(int rank, Own own) {
    this.rank = rank;
    this.own = own;
  }

  /**
   * Maps the memory of the ranks of this host; all ranks call this at once, each in the thread of
   * its GPU.
   *
   * @param timeout how long to wait for a handle that was promised
   * @throws dev.symplan.runtime.failure.RunException when the handles cannot be passed or mapped
   */
  void exchange(World world, Duration timeout) {
    var peers = Sets.difference(world.ranksHere(), ImmutableSet.of(rank));
    int expected = peers.size() * Region.values().length;
    HandleExchange.exchange(
        world, "memory handles", sent -> export(sent, peers), expected, this::take, timeout);
  }

  private void export(List<HandleExchange.Sent> sent, Set<Integer> peers) {
    if (peers.isEmpty()) {
      return;
    }
    for (var region : Region.values()) {
      var block = own.block(region);
      int descriptor = own.driver.export(block.handle());
      for (int peer : peers) {
        sent.add(new HandleExchange.Sent(peer, region.ordinal(), block.bytes(), descriptor));
      }
    }
  }

  private void take(int from, int label, long bytes, int descriptor) {
    mapped.put(
        from, Region.values()[label], MappedBlock.of(descriptor, bytes, own.device, own.driver));
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
