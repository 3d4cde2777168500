package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.ir.testkit.HostNetwork;
import dev.symplan.ir.testkit.RankProcesses;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Launch;
import dev.symplan.runtime.launch.LaunchEnvironment;
import dev.symplan.runtime.launch.World;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Ranks are processes of several hosts, each with a {@link HostNetwork} address of its own. */
@Timeout(180)
class HostProcessesTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  @RegisterExtension final RankProcesses processes = new RankProcesses();

  /** Compares a run with one in a process, and then waits in runs until one does not come back. */
  static final class Rank {
    private Rank() {}

    public static void main(String[] args) {
      var mesh = new MeshProgram(Integer.parseInt(args[0]), Integer.parseInt(args[1]));
      int rank = Integer.parseInt(System.getenv("RANK"));
      var plan = mesh.plan(ImmutableMap.of());
      var expected = MeshProgram.inOneProcess(plan, 1).get(rank);
      var options = SessionOptions.DEFAULT.withLaunch(Launch.ENV).withTimeout(TIMEOUT);
      try (var session = Session.open(plan, new HostBackend(), options)) {
        boolean same = MeshProgram.same(MeshProgram.run(session, rank, 1), expected);
        System.out.println("same " + same);
        while (true) {
          session.run();
        }
      } catch (RunException e) {
        System.out.println("failed: " + e.getMessage());
        System.exit(4);
      }
    }
  }

  /** The ranks of a host, as threads of one process: many hosts need fewer of these. */
  static final class HostOfRanks {
    private HostOfRanks() {}

    public static void main(String[] args) {
      var mesh = new MeshProgram(Integer.parseInt(args[0]), Integer.parseInt(args[1]));
      int first = Integer.parseInt(System.getenv("RANK")) * mesh.local();
      try (var threads = Executors.newCachedThreadPool()) {
        boolean same =
            IntStream.range(first, first + mesh.local())
                .mapToObj(rank -> CompletableFuture.supplyAsync(() -> isSame(mesh, rank), threads))
                .toList()
                .stream()
                .allMatch(CompletableFuture::join);
        System.out.println("same " + same);
      }
    }

    private static boolean isSame(MeshProgram mesh, int rank) {
      var plan = mesh.plan(ImmutableMap.of());
      var variables = new HashMap<>(System.getenv());
      variables.put("RANK", Integer.toString(rank));
      variables.put("LOCAL_RANK", Integer.toString(rank % mesh.local()));
      variables.put("WORLD_SIZE", Integer.toString(mesh.ranks()));
      var environment = LaunchEnvironment.of(variables).orElseThrow();
      try (var world = World.join(environment, TIMEOUT);
          var session =
              Session.open(
                  plan,
                  new HostBackend(),
                  SessionOptions.DEFAULT.withTimeout(TIMEOUT).withWorld(world))) {
        return IntStream.rangeClosed(1, 3)
            .allMatch(
                seed ->
                    MeshProgram.same(
                        MeshProgram.run(session, rank, seed),
                        MeshProgram.inOneProcess(plan, seed).get(rank)));
      }
    }
  }

  /**
   * @param ranks how many each process has
   */
  private List<ChildProcess> launch(
      HostNetwork network, MeshProgram mesh, Class<?> main, int ranks) {
    return processes
        .behind(process -> network.prefix(process * ranks / mesh.local()))
        .launch(
            _ -> List.of(),
            process ->
                Map.of(
                    "NCCL_HOSTID",
                    mesh.host(process * ranks),
                    "LOCAL_RANK",
                    Integer.toString(process * ranks % mesh.local()),
                    "MASTER_ADDR",
                    network.address(0),
                    "SYMPLAN_TOKEN",
                    "only these processes know it"),
            main,
            mesh.ranks() / ranks,
            Integer.toString(mesh.hosts()),
            Integer.toString(mesh.local()));
  }

  private List<ChildProcess> launchAndCompare(HostNetwork network, MeshProgram mesh) {
    var started = launch(network, mesh, Rank.class, 1);
    for (var child : started) {
      assertThat(child.line("same ")).isEqualTo("same true");
    }
    return started;
  }

  @ParameterizedTest
  @CsvSource({"2, 2, 3", "3, 2, 0"})
  void runOnHostsUntilOneIsKilled(int hosts, int local, int victim) throws Exception {
    var mesh = new MeshProgram(hosts, local);
    try (var network = HostNetwork.of(hosts)) {
      launchAndCompare(network, mesh);
      assertThat(processes.outputsAfterKilling(victim))
          .allSatisfy(
              output ->
                  assertThat(output)
                      .startsWith("failed: ")
                      .contains(
                          "the process of rank %s on host %s".formatted(victim, mesh.host(victim)))
                      .contains("has ended or hangs"));
    }
  }

  /** Without networks of their own, {@code CutLinkTest} has a link that can be cut. */
  @Test
  void bothSidesOfACutLinkNameTheOther() throws Exception {
    var mesh = new MeshProgram(3, 2);
    try (var network = HostNetwork.of(mesh.hosts())) {
      assumeTrue(network.hasLinks(), "hosts have no links here");
      var started = launchAndCompare(network, mesh);
      network.cut(2);
      assertThat(processes.outputs(rank -> rank < 4))
          .allSatisfy(
              output ->
                  assertThat(output)
                      .startsWith("failed: ")
                      .containsPattern("the process of rank [45] on host host2 has ended or hangs")
                      .contains("it has sent nothing for 10 s"));
      assertThat(processes.outputs(rank -> rank >= 4))
          .allSatisfy(
              output ->
                  assertThat(output)
                      .startsWith("failed: ")
                      .contains(
                          "the process of rank 0 on host host0, which holds the shared store, has"
                              + " ended or hangs: it has sent nothing for 10 s"));
      for (var child : started) {
        assertThat(child.process().waitFor()).isEqualTo(4);
      }
    }
  }

  /** A host whose link is slow is waited for. */
  @Test
  void aSlowLinkChangesNothing() throws Exception {
    var mesh = new MeshProgram(4, 4);
    try (var network = HostNetwork.of(mesh.hosts())) {
      if (network.hasLinks()) {
        network.slow(3, 2000);
      }
      for (var child : launch(network, mesh, HostOfRanks.class, mesh.local())) {
        assertThat(child.rest()).isEqualTo("same true\n");
        assertThat(child.process().waitFor()).isZero();
      }
    }
  }
}
