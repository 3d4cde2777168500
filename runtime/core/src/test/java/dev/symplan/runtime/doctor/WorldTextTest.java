package dev.symplan.runtime.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.runtime.launch.Host;
import dev.symplan.runtime.launch.LaunchEnvironment;
import dev.symplan.runtime.launch.LaunchEnvironment.Launcher;
import dev.symplan.runtime.launch.World;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class WorldTextTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(20);
  private static final Host A = new Host("id of a", "a");
  private static final Host B = new Host("id of b", "b");

  private static WorldDiagnosis world(double ahead, String nccl) {
    var of = ImmutableMap.of("driver", "580.1", "libnccl.so.2", "2.28.9");
    return new WorldDiagnosis(
        ImmutableList.of(A, A, B),
        ImmutableList.of(of, of, ImmutableMap.of("driver", "580.1", "libnccl.so.2", nccl)),
        ImmutableList.of(0.0, 1.0, ahead),
        2,
        0.25);
  }

  @Test
  void showsWhatDiffers() {
    assertThat(WorldText.print(world(-3200, "2.27.7")))
        .isEqualTo(
            """
            3 processes on 2 hosts
              a: ranks 0, 1
              b: rank 2
            All meet in the store of rank 0 within 0.3 ms.
            The clock of b is 3.2 s behind that of a.

            The same everywhere:
              driver: 580.1

            Different:
              libnccl.so.2
                ranks 0, 1: 2.28.9
                rank 2: 2.27.7
            """);
  }

  @Test
  void saysWhereNothingDiffers() {
    assertThat(WorldText.print(world(101, "2.28.9")))
        .contains("Clocks agree within 104 ms.\n", "libnccl.so.2: 2.28.9\n\nNothing differs.\n");
  }

  /** Threads, which have one clock, and find different systems. */
  @Test
  void processesHearOfEachOther() {
    int port = ChildProcess.freePort();
    try (var threads = Executors.newCachedThreadPool()) {
      var all =
          IntStream.range(0, 3)
              .mapToObj(rank -> CompletableFuture.supplyAsync(() -> diagnosis(rank, port), threads))
              .toList()
              .stream()
              .map(CompletableFuture::join)
              .toList();
      for (var found : all) {
        assertThat(found.hosts()).extracting(Host::name).containsExactly("a", "a", "b");
        assertThat(found.facts())
            .extracting(facts -> facts.get("system"))
            .containsExactly("system 0", "system 0", "system 1");
        // Clocks are read in whole milliseconds.
        assertThat(found.clocks())
            .allSatisfy(ahead -> assertThat(Math.abs(ahead)).isLessThan(found.clockError() + 50));
        assertThat(found.meeting()).isPositive().isLessThanOrEqualTo(found.clockError());
      }
    }
  }

  private static WorldDiagnosis diagnosis(int rank, int port) {
    var environment =
        new LaunchEnvironment(Launcher.TORCHRUN, rank, 3, 0, "127.0.0.1", port, "doctor")
            .withHostId(rank == 2 ? "b" : "a");
    try (var world = World.join(environment, TIMEOUT)) {
      var machine =
          new Machine(
              "system " + rank / 2,
              Optional.empty(),
              ImmutableList.of(),
              ImmutableList.of(),
              ImmutableList.of(),
              ImmutableList.of(),
              Optional.empty());
      return WorldDiagnosis.of(world, machine, "1");
    }
  }
}
