package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.testkit.HostNetwork;
import dev.symplan.ir.testkit.RankProcesses;
import dev.symplan.ir.testkit.StageProgram;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.LaunchEnvironment;
import dev.symplan.runtime.launch.World;
import dev.symplan.runtime.tensor.HostTensor;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Stages with different collectives, on hosts with different numbers of ranks, each a process in a
 * {@link HostNetwork} of its own: their results are those of a run in one process, bit for bit.
 */
@Tag("random")
@Timeout(300)
class StageProcessesTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final long SEED = Fuzz.seed(22_980_000);
  private static final int PROGRAMS = 3;
  private static final int INPUTS = 3;

  /** Ranks that take what others staged for another collective do so in few of the runs. */
  private static final int RUNS = 20;

  @RegisterExtension final RankProcesses processes = new RankProcesses();

  private static StageProgram program(long seed) {
    return StageProgram.draw(new Random(seed), 4, List.of(DType.F32, DType.I32, DType.BF16));
  }

  private static Plan plan(StageProgram program) {
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withHosts(new Hosts(program.hosts())))
        .compile(GraphParser.parse(new SourceFile("stages.graph", program.text())));
  }

  /** The ranks of a host, as threads of one process. */
  static final class RanksOfHost {
    private RanksOfHost() {}

    public static void main(String[] args) {
      var plan = plan(program(Long.parseLong(args[0])));
      var expected =
          LongStream.rangeClosed(1, INPUTS)
              .mapToObj(seed -> MeshProgram.inOneProcess(plan, seed))
              .toList();
      int host = Integer.parseInt(System.getenv("RANK"));
      var ranks =
          IntStream.range(0, plan.worldSize())
              .filter(rank -> plan.topology().host(rank) == host)
              .toArray();
      try (var threads = Executors.newCachedThreadPool()) {
        var differences =
            IntStream.range(0, ranks.length)
                .mapToObj(
                    i ->
                        CompletableFuture.supplyAsync(
                            () -> differences(plan, expected, ranks[i], i), threads))
                .toList()
                .stream()
                .map(CompletableFuture::join)
                .collect(Collectors.joining());
        System.out.println("differences: " + differences);
      }
    }

    /** {@return the runs of a rank with other results than expected, or why it ended} */
    private static String differences(
        Plan plan, List<List<List<HostTensor>>> expected, int rank, int local) {
      var variables = new HashMap<>(System.getenv());
      variables.put("RANK", Integer.toString(rank));
      variables.put("LOCAL_RANK", Integer.toString(local));
      variables.put("WORLD_SIZE", Integer.toString(plan.worldSize()));
      var environment = LaunchEnvironment.of(variables).orElseThrow();
      try (var world = World.join(environment, TIMEOUT);
          var session =
              Session.open(
                  plan,
                  new HostBackend(),
                  SessionOptions.DEFAULT.withTimeout(TIMEOUT).withWorld(world))) {
        return IntStream.range(0, RUNS)
            .filter(
                run ->
                    !MeshProgram.same(
                        MeshProgram.run(session, rank, run % INPUTS + 1),
                        expected.get(run % INPUTS).get(rank)))
            .mapToObj(run -> "rank %s, run %s; ".formatted(rank, run))
            .collect(Collectors.joining());
      } catch (RunException e) {
        return "rank %s: %s; ".formatted(rank, e.getMessage());
      }
    }
  }

  @Test
  void stagesRunOnHosts() throws Exception {
    var seeds =
        LongStream.iterate(SEED, seed -> seed + 1)
            .filter(seed -> plan(program(seed)).rankPlans().size() > 1)
            .limit(PROGRAMS)
            .toArray();
    for (long seed : seeds) {
      var topology = plan(program(seed)).topology();
      try (var network = HostNetwork.of(topology.hosts().length())) {
        for (var child : launch(network, topology, seed)) {
          assertThat(child.rest()).as("seed %s", seed).isEqualTo("differences: \n");
          assertThat(child.process().waitFor()).isZero();
        }
      }
    }
  }

  private List<ChildProcess> launch(HostNetwork network, Topology topology, long seed) {
    return processes
        .behind(network::prefix)
        .launch(
            _ -> List.of(),
            host ->
                Map.of(
                    "NCCL_HOSTID",
                    "host" + host,
                    "MASTER_ADDR",
                    network.address(topology.host(0)),
                    "SYMPLAN_TOKEN",
                    "only these processes know it"),
            RanksOfHost.class,
            topology.hosts().length(),
            Long.toString(seed));
  }
}
