package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.testkit.RankProcesses;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Launch;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Ranks are processes, which pass for those of several hosts: a network of their own would need
 * rights that tests do not have. Rank 0 listens at an address of the loopback network.
 */
@Timeout(90)
class HostProcessesTest {
  @RegisterExtension final RankProcesses processes = new RankProcesses();

  /** Compares a run with one in a process, and then waits in runs until one does not come back. */
  static final class Child {
    private Child() {}

    public static void main(String[] args) {
      var mesh = new MeshProgram(Integer.parseInt(args[0]), Integer.parseInt(args[1]));
      int rank = Integer.parseInt(System.getenv("RANK"));
      var plan = mesh.plan(ImmutableMap.of());
      var expected = MeshProgram.inOneProcess(plan, 1).get(rank);
      var options =
          SessionOptions.DEFAULT.withLaunch(Launch.ENV).withTimeout(Duration.ofSeconds(30));
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

  @ParameterizedTest
  @CsvSource({"2, 2, 3", "3, 2, 0"})
  void runOnHostsUntilOneIsKilled(int hosts, int local, int victim) throws Exception {
    var mesh = new MeshProgram(hosts, local);
    var started =
        processes.launch(
            _ -> List.of(),
            rank ->
                Map.of(
                    "NCCL_HOSTID",
                    mesh.host(rank),
                    "LOCAL_RANK",
                    Integer.toString(rank % local),
                    "MASTER_ADDR",
                    "127.0.22.1",
                    "SYMPLAN_TOKEN",
                    "only these processes know it"),
            Child.class,
            mesh.ranks(),
            Integer.toString(hosts),
            Integer.toString(local));
    for (var child : started) {
      assertThat(child.line("same ")).isEqualTo("same true");
    }
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
