package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.ir.testkit.RankProcesses;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** {@code run} in several processes, of which some are taken for processes of another host. */
@Timeout(120)
class LaunchedHostsTest {
  /** Two ranks of the first host, and the one of the second, which has another number of ranks. */
  private static final List<String> HOSTS = List.of("a", "a", "b");

  private static final String GRAPH =
      """
      graph version 1
      group all = [0, 1, 2]
      graph g(x: f32[64, 64]) {
        r = _c10d_functional::all_reduce(x, "sum", "all")
        w = _c10d_functional::wait_tensor(r)
        return w
      }
      """;

  @RegisterExtension private final RankProcesses processes = new RankProcesses();

  @TempDir private Path folder;

  private List<String> run(String... args) {
    return outputs(HOSTS, args);
  }

  private List<String> outputs(List<String> hosts, String... args) {
    var children =
        processes.launch(
            _ -> List.of(),
            rank -> Map.of("NCCL_HOSTID", hosts.get(rank)),
            Main.class,
            hosts.size(),
            args);
    return children.stream().map(ChildProcess::rest).toList();
  }

  @Test
  void plansForTheHostsOfTheProcesses() throws IOException {
    var graph = Files.writeString(folder.resolve("sum.graph"), GRAPH).toString();
    assertThat(run("run", graph).getFirst())
        .contains("planned for the hosts of the processes: 2,1\n")
        .contains("r: all_reduce as nccl")
        .contains("ok: all 3 outputs agree");
  }

  /** From the measurement of a network to a prediction that goes by it. */
  @Test
  void measuredNetworksPredictRuns() throws IOException {
    var csv = folder.resolve("points.csv");
    var measured =
        outputs(
            List.of("a", "b"),
            "bench",
            "collectives",
            "--backend",
            "host",
            "--ops",
            "all_reduce,all_gather",
            "--sizes",
            "1KiB,64KiB",
            "--measurements",
            "1",
            "--csv",
            csv.toString());
    assertThat(measured.getFirst()).contains("all_reduce,nccl,bf16,65536,2,2,");
    assertThat(measured.getLast()).isEmpty();
    assertThat(Files.readString(csv)).contains("\nall_gather,nccl,bf16,1024,2,2,");

    var target = folder.resolve("lab.json");
    assertThat(Ran.run("calibrate", csv, "--base", "host", "-o", target).code()).isZero();
    assertThat(Files.readString(target)).contains("\"network\"", "\"curves\"");
    var graph = Files.writeString(folder.resolve("sum.graph"), GRAPH.replace("0, 1, 2", "0, 1"));
    var run =
        outputs(
            List.of("a", "b"),
            "run",
            graph.toString(),
            "--target",
            target.toString(),
            "--measurements",
            "3");
    assertThat(run.getFirst())
        .contains("planned for the hosts of the processes: 2x1\n")
        .containsPattern("a run takes [0-9.]+ µs \\(median of 3; .*\\); [0-9.]+ µs predicted\n");
  }

  @Test
  void hostsOfDifferentSizesAreNotMeasured() {
    assertThat(run("bench", "collectives", "--backend", "host").getFirst())
        .contains("the hosts have different numbers of ranks (2,1)");
  }

  /** The user's word counts, and a plan stays as it is. */
  @Test
  void otherHostsThatAreAskedForAreRefused() throws IOException {
    var graph = Files.writeString(folder.resolve("sum.graph"), GRAPH).toString();
    var plan = folder.resolve("sum.plan");
    assertThat(Ran.run("compile", graph, "-o", plan).code()).isZero();
    for (var args :
        List.of(
            new String[] {"run", graph, "--hosts", "3"}, new String[] {"run", plan.toString()})) {
      assertThat(run(args).getFirst())
          .doesNotContain("planned for")
          .contains("ranks 0, 1 are on a, rank 2 is on b. Plan for these hosts: --hosts 2,1\n");
    }
  }
}
