package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.ImmutableSortedSet;
import com.google.common.collect.Sets;
import dev.symplan.runtime.cuda.Peers.Region;
import dev.symplan.runtime.cuda.RecordingDriver.Machine;
import dev.symplan.runtime.launch.Host;
import dev.symplan.runtime.launch.World;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The driver's calls by which processes reach each other's memory, against a driver of the test.
 */
@Timeout(240)
class MappedPeersTest {
  private static final int RANKS = 3;

  private static final MulticastTeams NONE = new MulticastTeams(ImmutableSet.of());

  private final Machine machine = new Machine();

  private static void exchange(World world, RecordingDriver driver) {
    exchange(world, world.ranksHere(), driver);
  }

  private static void exchange(
      World world, ImmutableSortedSet<Integer> reached, RecordingDriver driver) {
    int rank = world.rank();
    var check = new Check(rank);
    var own = new MappedPeers.Own(rank, ImmutableList.of(rank), NONE, driver);
    var peers =
        new MappedPeers(
            rank, ImmutableSortedSet.copyOf(Sets.difference(reached, ImmutableSet.of(rank))), own);
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
      for (int peer : reached) {
        for (var region : Region.values()) {
          addresses.add(peers.base(peer, region));
        }
      }
      assertThat(addresses).hasSize(reached.size() * Region.values().length);
      for (int peer = 0; peer < RANKS; peer++) {
        int other = peer;
        if (!reached.contains(peer)) {
          assertThatThrownBy(() -> peers.base(other, Region.ARENA))
              .isInstanceOf(IllegalStateException.class);
        }
      }
    } finally {
      Release.all(releases.reversed());
    }
  }

  private List<RecordingDriver> drivers(int failingRank, int failing) {
    return drivers(failingRank, failing, false);
  }

  private List<RecordingDriver> drivers(int failingRank, int failing, boolean fabric) {
    return IntStream.range(0, RANKS)
        .mapToObj(
            rank -> new RecordingDriver(machine, rank, rank == failingRank ? failing : -1, fabric))
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
    assertThat(machine.openDescriptors()).isZero();
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
    assertThat(machine.openDescriptors()).isZero();
  }

  /** Ranks 0 and 2 are on one host, rank 1 on another one of their fabric. */
  private static List<String> runOverFabric(List<RecordingDriver> drivers) {
    return Worlds.failures(
        RANKS,
        rank -> rank == 1 ? "b" : "a",
        world -> exchange(world, ImmutableSortedSet.of(0, 1, 2), drivers.get(world.rank())));
  }

  @Test
  void fabricHandlesGoToOtherHosts() {
    var drivers = drivers(-1, -1, true);
    assertThat(runOverFabric(drivers)).containsOnly("");
    for (int rank = 0; rank < RANKS; rank++) {
      var calls = drivers.get(rank).calls();
      int near = rank == 1 ? 0 : 1;
      int far = rank == 1 ? 2 : 1;
      int regions = Region.values().length;
      assertThat(calls).filteredOn(call -> call.matches("export \\d+")).hasSize(near * regions);
      assertThat(calls).filteredOn(call -> call.matches("export .* fabric")).hasSize(regions);
      assertThat(calls).filteredOn(call -> call.matches("import \\d+")).hasSize(near * regions);
      assertThat(calls).filteredOn(call -> call.matches("import .* fabric")).hasSize(far * regions);
    }
    assertThat(machine.wrong()).isEmpty();
    assertThat(machine.held()).isEmpty();
    assertThat(machine.openDescriptors()).isZero();
  }

  /** Memory that was made without a fabric in mind has no handle for other hosts. */
  @Test
  void withoutAFabricOtherHostsAreNotReached() {
    assertThat(runOverFabric(drivers(-1, -1)))
        .allSatisfy(failure -> assertThat(failure).contains("not made for a fabric"));
    assertThat(machine.held()).isEmpty();
  }

  @Test
  void domainsAreHostsOrAFabric() {
    for (boolean all : new boolean[] {true, false}) {
      assertThat(
              Worlds.failures(
                  4,
                  rank -> "host" + rank / 2,
                  world -> {
                    var domains = FabricDomains.of(world, () -> all || world.rank() < 3);
                    assertThat(domains.get(0).id()).isEqualTo(domains.get(1).id());
                    assertThat(domains.get(0).id().equals(domains.get(2).id())).isEqualTo(all);
                    assertThat(domains).extracting(Host::name).contains("host0", "host1");
                  }))
          .containsOnly("");
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void allHearOfAFailureAndKeepNothing(boolean fabric) {
    Function<List<RecordingDriver>, List<String>> run =
        fabric ? MappedPeersTest::runOverFabric : MappedPeersTest::run;
    var usual = drivers(-1, -1, fabric);
    run.apply(usual);
    for (int failing = 0; failing < usual.get(1).calls().size(); failing++) {
      var drivers = drivers(1, failing, fabric);
      var failures = run.apply(drivers);
      assertThat(failures.get(1)).contains("as told");
      assertThat(machine.wrong()).isEmpty();
      if (drivers.get(1).failsToUndo()) {
        break;
      }
      assertThat(failures).allMatch(text -> text.contains("as told"));
      assertThat(machine.held()).as(failures.get(1)).isEmpty();
    }
    assertThat(machine.openDescriptors()).isZero();
  }
}
