package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.collect.ImmutableSortedSet;
import com.google.common.collect.Sets;
import com.google.common.primitives.Bytes;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Host;
import dev.symplan.runtime.launch.PlanAgreement;
import dev.symplan.runtime.launch.World;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
import org.bytedeco.cuda.global.cudart;

/** Connects a session of one rank with the processes of the other ranks. */
final class Processes {
  private static final int MAX_BUS_ID = 64;

  private Processes() {}

  /**
   * {@return this process's rank and its GPU, which no other rank of the host has}
   *
   * @throws RunException when two ranks of a host have the same
   */
  static ImmutableSortedMap<Integer, Integer> device(World world, int device) {
    var buses =
        world.gather("GPUs", busId(device, world.rank()).getBytes(StandardCharsets.UTF_8)).stream()
            .map(bytes -> new String(bytes, StandardCharsets.UTF_8))
            .toList();
    requireSeparate(buses, world.hosts());
    return ImmutableSortedMap.of(world.rank(), device);
  }

  /**
   * {@return the GPU of this process: the given one, else the only one that it sees, or the one of
   * its number on the host}
   *
   * @throws RunException when it does not exist
   */
  static int own(World world, OptionalInt given) {
    int count = Devices.count();
    if (given.isPresent()) {
      return Devices.checked(given.getAsInt(), count);
    }
    int device = count == 1 ? 0 : world.localRank();
    if (device >= count) {
      throw new RunException(
          "rank %s is process %s of its host, which has only GPUs 0 to %s"
              .formatted(world.rank(), world.localRank(), count - 1));
    }
    return device;
  }

  /** {@return how far the memory of each rank reaches} */
  static ImmutableList<Host> domains(World world, int device) {
    return FabricDomains.of(
        world, () -> CudaMemoryDriver.hasFabric(device, new Check(world.rank())));
  }

  /**
   * Checks that the ranks of each host have different GPUs; those of several hosts may have the
   * same address.
   *
   * @param buses the address of each rank's GPU on its host
   * @throws RunException when two have the same
   */
  static void requireSeparate(List<String> buses, List<Host> hosts) {
    var first = new HashMap<String, Integer>();
    for (int rank = 0; rank < buses.size(); rank++) {
      var other = first.putIfAbsent(hosts.get(rank).id() + '\n' + buses.get(rank), rank);
      if (other != null) {
        throw new RunException(
            "ranks %s and %s use the same GPU (%s) of %s: each needs a separate one"
                .formatted(other, rank, buses.get(rank), hosts.get(rank).name()));
      }
    }
  }

  private static String busId(int device, int rank) {
    var text = new byte[MAX_BUS_ID];
    new Check(rank)
        .runtime(cudart.cudaDeviceGetPCIBusId(text, text.length, device), "cudaDeviceGetPCIBusId");
    return new String(text, 0, Bytes.indexOf(text, (byte) 0), StandardCharsets.US_ASCII);
  }

  /** Allocates and shares memory, and joins communicators, with the other processes. */
  static void prepare(
      LocalRank local,
      Executable executable,
      ImmutableList<DeviceProgram> programs,
      MulticastTeams teams,
      ProductTimer timer,
      World world,
      Duration timeout) {
    int rank = world.rank();
    var domains = domains(world, local.device());
    var reached =
        Sets.filter(
            PlanAgreement.peers(executable, rank),
            peer -> domains.get(peer).id().equals(domains.get(rank).id()));
    local.start(
        () -> {
          int device = local.device();
          var driver =
              new CudaMemoryDriver(
                  new Check(rank), !world.ranksHere().containsAll(reached), !world.isOneHost());
          var own = new MappedPeers.Own(device, ImmutableList.of(device), teams, driver);
          local.open(
              executable.ranks().get(rank),
              programs.get(rank),
              executable.symmetricBytes(),
              own,
              timeout);
          var all = Sets.union(Sets.difference(world.ranksHere(), Set.of(rank)), reached);
          var mapped = new MappedPeers(rank, ImmutableSortedSet.copyOf(all), own);
          var peers = peers(world, mapped, own, local.gpu(), timeout);
          if (!teams.isEmpty()) {
            var member = own.member(rank);
            local.gpu().onClose(member::close);
            member.join(world, timeout);
            peers = peers.with(member);
          }
          var made = rank == 0 ? Communicators.toBytes(Communicators.ids(programs)) : new byte[0];
          var ids = Communicators.ofBytes(programs, world.gather("NCCL ids", made).getFirst());
          local.gpu().prepare(peers, ids, timer.choose(local.gpu()).agreed(world));
          world.barrier("memory and communicators, prepared");
        });
    local.thread().join();
  }

  /** The memory of a host's ranks on all of them, on every host, or on none: all need to know. */
  private static Peers peers(
      World world, MappedPeers peers, MappedPeers.Own own, Gpu gpu, Duration timeout) {
    gpu.onClose(peers::close);
    var problem = AllOrNone.problem(world, "peers' memory", () -> peers.exchange(world, timeout));
    if (problem.isEmpty()) {
      return peers;
    }
    peers.close();
    return new OwnMemoryOnly(world.rank(), own, problem.get());
  }

  /** Used if the memory of other processes cannot be mapped: NCCL has its own ways. */
  private record OwnMemoryOnly(int rank, MappedPeers.Own own, String reason) implements Peers {
    @Override
    public long base(int of, Region region) {
      if (of == rank) {
        return own.base(region);
      }
      throw new RunException(
          ("rank %s cannot reach the memory of rank %s: %s; plan with the variants nccl and"
                  + " nccl_symm (--variant), which do not need it")
              .formatted(rank, of, reason));
    }
  }
}
