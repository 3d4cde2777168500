package dev.symplan.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.runtime.failure.RunException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Ranks are processes, started as torchrun does. */
@Timeout(90)
class ProcessesTest {
  private static final int RANKS = 3;

  private List<ChildProcess> started = List.of();

  @AfterEach
  void stop() {
    started.forEach(child -> child.process().destroyForcibly());
  }

  /** What a child does; prints one line for the test. */
  static final class Child {
    private Child() {}

    public static void main(String[] args) {
      try (var world =
          World.join(LaunchEnvironment.of(System.getenv()).orElseThrow(), Duration.ofSeconds(30))) {
        world.barrier("begin");
        System.out.println("ready");
        switch (args[0]) {
          case "sum" -> {
            int sum =
                world.gather("ranks", new byte[] {(byte) world.rank()}).stream()
                    .mapToInt(bytes -> bytes[0])
                    .sum();
            System.out.println("sum " + sum);
          }
          case "wait" -> world.get("what nobody gives");
          default -> throw new IllegalArgumentException(args[0]);
        }
      } catch (RunException e) {
        System.out.println("failed: " + e.getMessage());
        System.exit(4);
      }
    }
  }

  private List<ChildProcess> start(String what) {
    started = ChildProcess.launch(Child.class, RANKS, what);
    return started;
  }

  @Test
  void meetAndLeave() throws Exception {
    for (var child : start("sum")) {
      assertThat(child.rest()).endsWith("sum 3\n");
      assertThat(child.process().waitFor()).isZero();
    }
  }

  @Test
  void aKilledRankIsNoticedAtOnce() throws Exception {
    killed(2, "the process of rank 2 has ended or hangs");
  }

  @Test
  void theLossOfTheStoreIsNoticedAtOnce() throws Exception {
    killed(0, "the process of rank 0, which holds the shared store, has ended or hangs");
  }

  private void killed(int victim, String expected) throws Exception {
    var children = start("wait");
    children.forEach(child -> child.line("ready"));
    children.get(victim).process().destroyForcibly();
    long begin = System.nanoTime();
    var others =
        IntStream.range(0, RANKS)
            .filter(rank -> rank != victim)
            .mapToObj(children::get)
            .map(child -> CompletableFuture.supplyAsync(child::rest))
            .toList();
    for (var other : others) {
      assertThat(other.get(20, TimeUnit.SECONDS)).startsWith("failed: ").contains(expected);
    }
    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(5));
    for (int rank = 0; rank < RANKS; rank++) {
      assertThat(children.get(rank).process().waitFor()).isEqualTo(rank == victim ? 137 : 4);
    }
  }
}
