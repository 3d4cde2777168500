package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Launch;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Ranks are processes, which pass for those of several hosts: a network of their own would need
 * rights that tests do not have. Rank 0 listens at an address of the loopback network.
 */
@Timeout(90)
class HostProcessesTest {
  private List<ChildProcess> started = List.of();

  @AfterEach
  void stop() {
    started.forEach(child -> child.process().destroyForcibly());
  }

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
    started =
        ChildProcess.launch(
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
    started.get(victim).process().destroyForcibly();
    var others =
        IntStream.range(0, mesh.ranks())
            .filter(rank -> rank != victim)
            .mapToObj(started::get)
            .map(child -> CompletableFuture.supplyAsync(child::rest))
            .toList();
    for (var other : others) {
      assertThat(other.get(30, TimeUnit.SECONDS))
          .startsWith("failed: ")
          .contains("the process of rank %s on host %s".formatted(victim, mesh.host(victim)))
          .contains("has ended or hangs");
    }
    for (int rank = 0; rank < mesh.ranks(); rank++) {
      assertThat(started.get(rank).process().waitFor()).isEqualTo(rank == victim ? 137 : 4);
    }
  }
}
