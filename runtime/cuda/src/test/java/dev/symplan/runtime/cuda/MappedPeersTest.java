package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.runtime.cuda.Peers.Region;
import dev.symplan.runtime.cuda.RecordingDriver.Machine;
import dev.symplan.runtime.launch.World;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What processes call of the driver to reach each other's memory, against one that is none. */
@Timeout(240)
class MappedPeersTest {
  private static final int RANKS = 3;

  private static final MulticastTeams NONE = new MulticastTeams(ImmutableSet.of());

  private final Machine machine = new Machine();

  private static void exchange(World world, RecordingDriver driver) {
    int rank = world.rank();
    var check = new Check(rank);
    var own = new MappedPeers.Own(rank, ImmutableList.of(rank), NONE, driver);
    var peers = new MappedPeers(rank, own);
    var releases = new ArrayList<Runnable>();
    try {
      AllOrNone.check(
          world,
          "memory",
          () -> {
            for (var region : Region.values()) {
              var memory = own.allocate(region, 100, check);
              releases.add(() -> own.free(memory, check));
            }
          });
      releases.add(peers::close);
      AllOrNone.check(world, "peers", () -> peers.exchange(world, Worlds.TIMEOUT));
      var addresses = new HashSet<Long>();
      for (int peer : world.ranksHere()) {
        for (var region : Region.values()) {
          addresses.add(peers.base(peer, region));
        }
      }
      assertThat(addresses).hasSize(world.ranksHere().size() * Region.values().length);
      for (int peer = 0; peer < RANKS; peer++) {
        int other = peer;
        if (!world.ranksHere().contains(peer)) {
          assertThatThrownBy(() -> peers.base(other, Region.ARENA))
              .isInstanceOf(IllegalStateException.class);
        }
      }
    } finally {
      Release.all(releases.reversed());
    }
  }

  private List<RecordingDriver> drivers(int failingRank, int failing) {
    return IntStream.range(0, RANKS)
        .mapToObj(rank -> new RecordingDriver(machine, rank, rank == failingRank ? failing : -1))
        .toList();
  }

  private static List<String> run(List<RecordingDriver> drivers) {
    return Worlds.failures(RANKS, world -> exchange(world, drivers.get(world.rank())));
  }

  @Test
  void eachMapsTheMemoryOfAll() {
    var drivers = drivers(-1, -1);
    assertThat(run(drivers)).containsOnly("");
    for (var driver : drivers) {
      var calls = driver.calls();
      assertThat(calls).filteredOn(call -> call.startsWith("export")).hasSize(2);
      assertThat(calls).filteredOn(call -> call.startsWith("import")).hasSize(2 * (RANKS - 1));
      assertThat(calls).noneMatch(call -> call.contains("multicast"));
    }
    assertThat(machine.wrong()).isEmpty();
    assertThat(machine.held()).isEmpty();
    assertThat(RecordingDriver.openDescriptors()).isZero();
  }

  /** Ranks 0 and 2 are on one host, rank 1 on another one: nobody sends it anything. */
  @Test
  void handlesStayWithinAHost() {
    var drivers = drivers(-1, -1);
    assertThat(
            Worlds.failures(
                RANKS,
                rank -> rank == 1 ? "b" : "a",
                world -> exchange(world, drivers.get(world.rank()))))
        .containsOnly("");
    for (int rank = 0; rank < RANKS; rank++) {
      var calls = drivers.get(rank).calls();
      int shared = rank == 1 ? 0 : 2;
      assertThat(calls).filteredOn(call -> call.startsWith("export")).hasSize(shared);
      assertThat(calls).filteredOn(call -> call.startsWith("import")).hasSize(shared);
    }
    assertThat(machine.wrong()).isEmpty();
    assertThat(machine.held()).isEmpty();
    assertThat(RecordingDriver.openDescriptors()).isZero();
  }

  @Test
  void allHearOfAFailureAndKeepNothing() {
    var usual = drivers(-1, -1);
    run(usual);
    for (int failing = 0; failing < usual.get(1).calls().size(); failing++) {
      var drivers = drivers(1, failing);
      var failures = run(drivers);
      assertThat(failures.get(1)).contains("as told");
      assertThat(machine.wrong()).isEmpty();
      if (drivers.get(1).failsToUndo()) {
        break;
      }
      assertThat(failures).allMatch(text -> text.contains("as told"));
      assertThat(machine.held()).as(failures.get(1)).isEmpty();
    }
    assertThat(RecordingDriver.openDescriptors()).isZero();
  }
}
