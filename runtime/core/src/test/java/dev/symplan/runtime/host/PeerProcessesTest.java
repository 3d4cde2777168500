package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.Transfers;
import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.ir.testkit.StageProgram;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.launch.LaunchEnvironment;
import dev.symplan.runtime.launch.LaunchEnvironment.Launcher;
import dev.symplan.runtime.launch.World;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class PeerProcessesTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(20);

  /**
   * Collectives on different streams run at the same time, so that what a peer stages for them lies
   * apart: also where the peer, whose graph is another, has both on one stream.
   */
  @Test
  void streamsShareNoCopyOfWhatAPeerStages() {
    var program =
        StageProgram.draw(new Random(22_980_000), 4, List.of(DType.F32, DType.I32, DType.BF16));
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withHosts(new Hosts(program.hosts())))
            .compile(GraphParser.parse(new SourceFile("stages.graph", program.text())));
    int port = ChildProcess.freePort();
    try (var threads = Executors.newCachedThreadPool()) {
      var overlaps =
          IntStream.range(0, plan.worldSize())
              .mapToObj(
                  rank -> CompletableFuture.supplyAsync(() -> overlaps(rank, port, plan), threads))
              .toList()
              .stream()
              .flatMap(rank -> rank.join().stream())
              .toList();
      assertThat(overlaps).isEmpty();
    }
  }

  private static List<String> overlaps(int rank, int port, Plan plan) {
    int host = plan.topology().host(rank);
    int local = (int) IntStream.range(0, rank).filter(r -> plan.topology().host(r) == host).count();
    var environment =
        new LaunchEnvironment(
                Launcher.TORCHRUN, rank, plan.worldSize(), local, "127.0.22.1", port, "peers")
            .withHostId("host" + host);
    var executable = Lowering.lower(plan);
    var transfers = new Transfers(executable);
    var events = executable.ranks().stream().mapToInt(RankProgram::events).toArray();
    var found = new ArrayList<String>();
    try (var world = World.join(environment, TIMEOUT);
        var memory = Arena.ofShared()) {
      var peers =
          new PeerProcesses(
              executable, transfers, world, new HostSync(events, TIMEOUT, _ -> ""), memory);
      var collectives =
          transfers.ofRank(rank).stream()
              .filter(collective -> collective.variant() == Variant.NCCL)
              .toList();
      for (var a : collectives) {
        for (var b : collectives) {
          for (int peer = 0; peer < plan.worldSize(); peer++) {
            if (a.stream() != b.stream()
                && a.group().members().contains(peer)
                && b.group().members().contains(peer)
                && peers
                    .staging(peer, at(peer, transfers, a))
                    .asOverlappingSlice(peers.staging(peer, at(peer, transfers, b)))
                    .isPresent()) {
              found.add("%s: '%s' and '%s' of rank %s".formatted(rank, a.name(), b.name(), peer));
            }
          }
        }
      }
      world.barrier("looked");
    }
    return found;
  }

  private static Collective at(int rank, Transfers transfers, Collective collective) {
    return transfers.at(collective.group().members().indexOf(rank), collective);
  }
}
