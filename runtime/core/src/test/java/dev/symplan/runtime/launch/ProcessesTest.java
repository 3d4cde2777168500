package dev.symplan.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.ir.testkit.RankProcesses;
import dev.symplan.runtime.failure.RunException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Ranks are processes, started as torchrun does. */
@Timeout(90)
class ProcessesTest {
  private static final int RANKS = 3;

  @RegisterExtension final RankProcesses processes = new RankProcesses();

  /** A child's work; prints one line for the test. */
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
    return processes.launch(Child.class, RANKS, what);
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
    start("wait").forEach(child -> child.line("ready"));
    long begin = System.nanoTime();
    assertThat(processes.outputsAfterKilling(victim))
        .allSatisfy(output -> assertThat(output).startsWith("failed: ").contains(expected));
    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(5));
  }
}
