package dev.symplan.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.runtime.RunException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Ranks are processes, started as torchrun does. */
@Timeout(90)
class ProcessesTest {
  private final List<Process> started = new ArrayList<>();

  @AfterEach
  void stop() {
    started.forEach(Process::destroyForcibly);
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

  private List<Process> start(int size, String what) throws IOException {
    int port = WorldTest.freePort();
    for (int rank = 0; rank < size; rank++) {
      var builder =
          new ProcessBuilder(
              Path.of(System.getProperty("java.home"), "bin", "java").toString(),
              "-XX:TieredStopAtLevel=1",
              "-cp",
              System.getProperty("java.class.path"),
              Child.class.getName(),
              what);
      builder
          .environment()
          .putAll(
              Map.of(
                  "RANK", Integer.toString(rank),
                  "WORLD_SIZE", Integer.toString(size),
                  "LOCAL_RANK", Integer.toString(rank),
                  "MASTER_ADDR", "localhost",
                  "MASTER_PORT", Integer.toString(port - 1)));
      started.add(builder.redirectErrorStream(true).start());
    }
    return started;
  }

  private static String lastLine(Process process) {
    try (var lines = process.inputReader(StandardCharsets.UTF_8)) {
      return lines.lines().reduce((_, b) -> b).orElse("");
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void meetAndLeave() throws Exception {
    for (var process : start(3, "sum")) {
      assertThat(lastLine(process)).isEqualTo("sum 3");
      assertThat(process.waitFor()).isZero();
    }
  }

  @Test
  void aKilledRankIsNoticedAtOnce() throws Exception {
    killed(2, "the process of rank 2 has ended or hangs");
  }

  @Test
  void theLossOfTheStoreIsNoticedAtOnce() throws Exception {
    killed(0, "the process of rank 0, which keeps what ranks share, has ended or hangs");
  }

  private void killed(int victim, String expected) throws Exception {
    var processes = start(3, "wait");
    for (var process : processes) {
      assertThat(process.inputReader(StandardCharsets.UTF_8).readLine()).isEqualTo("ready");
    }
    processes.get(victim).destroyForcibly();
    long begin = System.nanoTime();
    var others =
        IntStream.range(0, 3)
            .filter(rank -> rank != victim)
            .mapToObj(processes::get)
            .map(process -> CompletableFuture.supplyAsync(() -> lastLine(process)))
            .toList();
    for (var other : others) {
      assertThat(other.get(20, TimeUnit.SECONDS)).startsWith("failed: ").contains(expected);
    }
    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(5));
    for (int rank = 0; rank < 3; rank++) {
      assertThat(processes.get(rank).waitFor()).isEqualTo(rank == victim ? 137 : 4);
    }
  }
}
