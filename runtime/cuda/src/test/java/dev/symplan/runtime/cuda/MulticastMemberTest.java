package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.ImmutableSortedSet;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.PlanAdvice;
import dev.symplan.runtime.cuda.Peers.Region;
import dev.symplan.runtime.cuda.RecordingDriver.Machine;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.World;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The driver's calls for multicast, against a driver of the test. */
@Timeout(240)
class MulticastMemberTest {
  private static final int RANKS = 3;
  private static final long BYTES = 5000;

  private static final MulticastTeams TEAMS =
      new MulticastTeams(
          ImmutableSet.of(ImmutableSortedSet.of(0, 1, 2), ImmutableSortedSet.of(1, 2)));

  private static final ImmutableMap<String, Variant> MULTIMEM =
      ImmutableMap.of("all_reduce", Variant.MULTIMEM, "all_gather", Variant.MULTIMEM);

  private static final ImmutableList<Integer> DEVICES = ImmutableList.of(0, 1, 2);

  /** One rank's memory and part, as sessions make and free them. */
  private static final class Rank {
    final RecordingDriver driver;
    final Check check;
    final List<Runnable> releases = new ArrayList<>();
    final MappedPeers.Own own;
    final int rank;

    Rank(Machine machine, int rank, int failing, ImmutableList<Integer> devices) {
      this(new RecordingDriver(machine, rank, failing), rank, devices);
    }

    Rank(RecordingDriver driver, int rank, ImmutableList<Integer> devices) {
      this.rank = rank;
      this.driver = driver;
      check = new Check(rank);
      own = new MappedPeers.Own(rank, devices, TEAMS, driver);
    }

    MulticastMember open() {
      var memory = own.allocate(Region.ARENA, BYTES, check);
      releases.add(() -> own.free(memory, check));
      var member = own.member(rank);
      releases.add(member::close);
      return member;
    }

    void close() {
      Release.all(releases.reversed());
    }
  }

  /** Does all, and fails then with the first failure, as the threads of a session do. */
  private static <T> void all(List<T> items, Consumer<T> step) {
    var failures = new ArrayList<RunException>();
    for (var item : items) {
      try {
        step.accept(item);
      } catch (RunException e) {
        failures.add(e);
      }
    }
    if (!failures.isEmpty()) {
      throw failures.getFirst();
    }
  }

  /** The end of it all. */
  private record Outcome(Machine machine, List<Rank> ranks) {
    List<String> calls(int rank) {
      return ranks.get(rank).driver.calls();
    }

    /** Whatever failed, what was had before is given back; if that failed, all else is. */
    void check(int rank, int failing, List<String> usual) {
      var what = "rank %s: %s".formatted(rank, calls(rank).get(failing));
      assertThat(machine.wrong()).as(what).isEmpty();
      if (ranks.get(rank).driver.failsToUndo()) {
        assertThat(calls(rank)).as(what).isEqualTo(usual);
      } else {
        assertThat(machine.held()).as(what).isEmpty();
      }
    }
  }

  private static Outcome inOneProcess(int failingRank, int failing) {
    var machine = new Machine();
    var ranks =
        IntStream.range(0, RANKS)
            .mapToObj(rank -> new Rank(machine, rank, rank == failingRank ? failing : -1, DEVICES))
            .toList();
    var members = new ArrayList<MulticastMember>();
    Optional<RunException> failure = Optional.empty();
    try {
      all(ranks, rank -> members.add(rank.open()));
      MulticastMember.joinWithin(step -> all(members.reversed(), step));
    } catch (RunException e) {
      failure = Optional.of(e);
    }
    try {
      all(ranks, Rank::close);
    } catch (RunException e) {
      failure = failure.or(() -> Optional.of(e));
    }
    assertThat(failure.map(RunException::getMessage).orElse(""))
        .contains(failingRank < 0 ? "" : "as told");
    return new Outcome(machine, ranks);
  }

  @Test
  void callsOfOneProcess() {
    var done = inOneProcess(-1, -1);
    assertThat(done.machine().held()).isEmpty();
    assertThat(done.machine().wrong()).isEmpty();
    // Memory has the handles 1 to 3; the object of two ranks is 4, and that of all is 5.
    assertThat(done.calls(1))
        .containsExactly(
            "multicast granularity for 3 GPUs",
            "multicast granularity for 2 GPUs",
            "granularity of GPU 1",
            "create 24576 bytes on GPU 1",
            "reserve 24576 bytes, aligned to 0",
            "map 2",
            "allow GPUs [0, 1, 2]",
            "create a multicast object of 24576 bytes for 2 GPUs",
            "add GPU 1 to 5",
            "add GPU 1 to 4",
            "bind 24576 bytes of 2 to 5",
            "multicast granularity for 3 GPUs",
            "reserve 24576 bytes, aligned to 12288",
            "map 5",
            "allow GPUs [1]",
            "bind 24576 bytes of 2 to 4",
            "multicast granularity for 2 GPUs",
            "reserve 24576 bytes, aligned to 8192",
            "map 4",
            "allow GPUs [1]",
            "unmap 4",
            "unreserve 24576 bytes",
            "unbind GPU 1 from 4",
            "unmap 5",
            "unreserve 24576 bytes",
            "unbind GPU 1 from 5",
            "unmap 2",
            "unreserve 24576 bytes",
            "release 2");
    assertThat(done.calls(2))
        .as("the last one lets go of the objects, when nothing is bound to them any more")
        .endsWith(
            "unbind GPU 2 from 5",
            "release 4",
            "release 5",
            "unmap 3",
            "unreserve 24576 bytes",
            "release 3");
  }

  @Test
  void failuresOfOneProcess() {
    var usual = inOneProcess(-1, -1);
    for (int rank = 0; rank < RANKS; rank++) {
      for (int failing = 0; failing < usual.calls(rank).size(); failing++) {
        inOneProcess(rank, failing).check(rank, failing, usual.calls(rank));
      }
    }
  }

  /** {@return the results of three processes, which are threads here, with a world for each} */
  private static Outcome inProcesses(int failingRank, int failing) {
    var machine = new Machine();
    var ranks =
        IntStream.range(0, RANKS)
            .mapToObj(
                rank ->
                    new Rank(
                        machine, rank, rank == failingRank ? failing : -1, ImmutableList.of(rank)))
            .toList();
    var failures = Worlds.failures(RANKS, world -> join(world, ranks.get(world.rank())));
    if (failingRank < 0) {
      assertThat(failures).containsOnly("");
    } else if (ranks.get(failingRank).driver.failsToUndo()) {
      assertThat(failures.get(failingRank)).contains("as told");
    } else {
      assertThat(failures).as("all hear of it").allMatch(text -> text.contains("as told"));
    }
    return new Outcome(machine, ranks);
  }

  private static void join(World world, Rank rank) {
    try {
      var opened = new MulticastMember[1];
      AllOrNone.check(world, "arenas", () -> opened[0] = rank.open());
      opened[0].join(world, Worlds.TIMEOUT);
      world.barrier("runs");
    } finally {
      rank.close();
    }
  }

  @Test
  void callsOfProcesses() {
    var done = inProcesses(-1, -1);
    assertThat(done.machine().held()).isEmpty();
    assertThat(done.machine().wrong()).isEmpty();
    for (int rank = 0; rank < RANKS; rank++) {
      var calls = done.calls(rank).stream().map(call -> call.split(" ")[0]).toList();
      assertThat(String.join(" ", calls.subList(7, calls.size())))
          .isEqualTo(
              switch (rank) {
                case 0 ->
                    "create export add bind multicast reserve map allow"
                        + " unmap unreserve unbind release unmap unreserve release";
                case 1 ->
                    "create export import add add bind multicast reserve map allow"
                        + " bind multicast reserve map allow unmap unreserve unbind"
                        + " unmap unreserve unbind release release unmap unreserve release";
                default ->
                    "import import add add bind multicast reserve map allow"
                        + " bind multicast reserve map allow unmap unreserve unbind"
                        + " unmap unreserve unbind release release unmap unreserve release";
              });
    }
  }

  @Test
  void failuresOfProcesses() {
    var usual = inProcesses(-1, -1);
    for (int rank = 0; rank < RANKS; rank++) {
      for (int failing = 0; failing < usual.calls(rank).size(); failing++) {
        var failed = inProcesses(rank, failing);
        assertThat(failed.machine().wrong()).isEmpty();
        if (!failed.ranks().get(rank).driver.failsToUndo()) {
          assertThat(failed.machine().held()).as(failed.calls(rank).get(failing)).isEmpty();
        }
        assertThat(failed.machine().openDescriptors()).isZero();
      }
    }
  }

  /** Rank 1 is on another host of the fabric; it leads a team, and is in one that rank 0 leads. */
  @Test
  void objectsOfAFabricGoToOtherHosts() {
    var machine = new Machine();
    var ranks =
        IntStream.range(0, RANKS)
            .mapToObj(
                rank ->
                    new Rank(
                        new RecordingDriver(machine, rank, -1, true), rank, ImmutableList.of(rank)))
            .toList();
    assertThat(
            Worlds.failures(
                RANKS,
                rank -> rank == 1 ? "b" : "a",
                world -> join(world, ranks.get(world.rank()))))
        .containsOnly("");
    assertThat(machine.wrong()).isEmpty();
    assertThat(machine.held()).isEmpty();
    assertThat(ranks.get(0).driver.calls())
        .filteredOn(call -> call.startsWith("export"))
        .satisfiesExactlyInAnyOrder(
            call -> assertThat(call).doesNotContain("fabric"),
            call -> assertThat(call).contains("fabric"));
    assertThat(ranks.get(1).driver.calls())
        .filteredOn(call -> call.contains("port"))
        .hasSize(2)
        .allMatch(call -> call.endsWith("fabric"));
    assertThat(machine.openDescriptors()).isZero();
  }

  private static Plan plan(String groups) {
    var text =
        """
        graph version 1
        group g = %s
        group all = [0, 1, 2, 3]
        graph t(x: bf16[64, 64]) {
          a = _c10d_functional::all_reduce(x, "sum", "g")
          b = _c10d_functional::wait_tensor(a)
          c = _c10d_functional::all_gather_into_tensor(b, 4, "all")
          d = _c10d_functional::wait_tensor(c)
          e = _c10d_functional::all_reduce(d, "sum", "g")
          f = _c10d_functional::wait_tensor(e)
          return f
        }
        """
            .formatted(groups);
    var options = CompileOptions.DEFAULT.withMulticast(true).withVariants(MULTIMEM);
    return Compiler.forTarget(Target.H200_X8)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("t.graph", text)));
  }

  private static MulticastTeams teams(String groups) {
    return MulticastTeams.of(DeviceLowering.lower(Lowering.lower(plan(groups))));
  }

  /** A set of ranks has one object, whatever the order in its groups. */
  @Test
  void teamsOfPlans() {
    assertThat(teams("[0, 1], [3, 2]").all())
        .containsExactly(
            ImmutableSortedSet.of(0, 1),
            ImmutableSortedSet.of(0, 1, 2, 3),
            ImmutableSortedSet.of(2, 3));
    assertThat(teams("[3, 2, 1, 0]").all()).containsExactly(ImmutableSortedSet.of(0, 1, 2, 3));
  }

  @Test
  void plansWithMulticastAreRefusedBeforeAnythingIsMade() {
    var plan = plan("[0, 1], [3, 2]");
    assertThatThrownBy(() -> CudaSession.open(Lowering.lower(plan), Worlds.TIMEOUT))
        .isInstanceOf(RunException.class)
        .hasMessage(
            "backend cuda: the plan has NVLink multicast between the ranks [0, 1], which is off;"
                + " add --multicast=on");
    assertThat(PlanAdvice.lacking(plan, new CudaBackend().variants(false)).orElseThrow())
        .startsWith(
            "all_reduce 'a' (t.graph:5) is planned as multimem, but backend cuda uses NVLink"
                + " multicast only with --multicast=on; make a new plan");
    assertThat(PlanAdvice.lacking(plan, new CudaBackend().variants(true))).isEmpty();
  }

  /** A step without a defined result, or that would wait for ever, is noticed. */
  @Test
  void theDriverOfTheTestsIsStrict() {
    var machine = new Machine();
    var driver = new RecordingDriver(machine, 0, -1);
    long memory = driver.create(0, 24576);
    long object = driver.createMulticast(2, 24576);
    driver.addDevice(object, 0);
    assertThatThrownBy(() -> driver.bind(object, memory, 24576)).hasMessageContaining("for ever");
    long address = driver.reserve(24576, 8192);
    assertThatThrownBy(() -> driver.map(address, 24576, object)).hasMessageContaining("for ever");
    driver.addDevice(object, 1);
    assertThatThrownBy(() -> driver.addDevice(object, 2)).hasMessageContaining("too many");
    assertThatThrownBy(() -> driver.bind(object, memory, 4096)).hasMessageContaining("size");
    driver.bind(object, memory, 24576);
    assertThatThrownBy(() -> driver.unbind(object, 0, 8192)).hasMessageContaining("not bound so");
    driver.release(object);
    assertThatThrownBy(() -> driver.unbind(object, 0, 24576)).hasMessageContaining("no such");
    assertThat(machine.wrong()).hasSize(6);
    assertThat(machine.held()).contains("handle " + memory, "reserved " + address);
  }
}
