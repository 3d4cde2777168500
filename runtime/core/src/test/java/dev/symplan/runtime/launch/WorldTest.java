package dev.symplan.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.runtime.failure.Failure;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.LaunchEnvironment.Launcher;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Ranks are threads here; {@link ProcessesTest} has processes. */
@Timeout(60)
class WorldTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(20);

  private final ExecutorService threads = Executors.newCachedThreadPool();

  @AfterEach
  void stop() {
    threads.shutdownNow();
  }

  private static LaunchEnvironment environment(int rank, int size, int port) {
    return new LaunchEnvironment(Launcher.TORCHRUN, rank, size, rank, "localhost", port, "job");
  }

  private <T> CompletableFuture<T> on(
      int rank, int size, int port, Duration timeout, Function<World, T> work) {
    return CompletableFuture.supplyAsync(
        () -> {
          try (var world = World.join(environment(rank, size, port), timeout)) {
            return work.apply(world);
          }
        },
        threads);
  }

  private <T> List<CompletableFuture<T>> onAll(int size, int port, Function<World, T> work) {
    var futures = new ArrayList<CompletableFuture<T>>();
    // The last come first, so that they have to wait for the store.
    for (int rank = size - 1; rank >= 0; rank--) {
      futures.addFirst(on(rank, size, port, TIMEOUT, work));
    }
    return futures;
  }

  private static String messageOf(CompletableFuture<?> future) {
    try {
      future.join();
      return "no failure";
    } catch (CompletionException e) {
      assertThat(e.getCause()).isInstanceOf(RunException.class);
      return String.valueOf(e.getCause().getMessage());
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  @Test
  void everyoneGetsWhatEveryoneGives() {
    var all =
        onAll(
            5,
            ChildProcess.freePort(),
            world -> {
              var texts = new ArrayList<String>();
              for (int round = 0; round < 3; round++) {
                for (var given : world.gather("names", bytes(round + "." + world.rank()))) {
                  texts.add(new String(given, StandardCharsets.UTF_8));
                }
              }
              world.barrier("end");
              assertThat(world.isOneHost()).isTrue();
              return String.join(" ", texts);
            });
    assertThat(all)
        .allSatisfy(
            future ->
                assertThat(future.join())
                    .isEqualTo("0.0 0.1 0.2 0.3 0.4 1.0 1.1 1.2 1.3 1.4 2.0 2.1 2.2 2.3 2.4"));
  }

  /** Whoever fails right after it: no other rank may still be waiting for what was given. */
  @Test
  void allGetThroughAGatheringOrNone() {
    for (int i = 0; i < 100; i++) {
      var all =
          onAll(
              3,
              ChildProcess.freePort(),
              world -> {
                var given = world.gather("names", bytes("n" + world.rank()));
                world.fail(1, "rank %s stops".formatted(world.rank()));
                return given.size();
              });
      assertThat(all).allSatisfy(future -> assertThat(future.join()).isEqualTo(3));
    }
  }

  @Test
  void largeValuesGoThrough() {
    var all =
        onAll(
            2,
            ChildProcess.freePort(),
            world -> {
              var large = new byte[10 << 20];
              large[5_000_000] = (byte) (world.rank() + 1);
              return world.gather("large", large).get(1)[5_000_000];
            });
    assertThat(all).allSatisfy(future -> assertThat(future.join()).isEqualTo((byte) 2));
  }

  @Test
  void valuesThatAreTooLargeAreRefused() {
    var all =
        onAll(
            1,
            ChildProcess.freePort(),
            world -> {
              assertThatThrownBy(() -> world.set("x", new byte[Frame.MAX_BYTES]))
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessageContaining("more than the store takes");
              return true;
            });
    assertThat(all.getFirst().join()).isTrue();
  }

  @Test
  void oneGivesAndTheOthersTake() {
    var all =
        onAll(
            3,
            ChildProcess.freePort(),
            world -> {
              if (world.rank() == 1) {
                world.set("id", bytes("x"));
              }
              return new String(world.get("id"), StandardCharsets.UTF_8);
            });
    assertThat(all).allSatisfy(future -> assertThat(future.join()).isEqualTo("x"));
  }

  @Test
  void aMissingRankIsNamed() {
    int port = ChildProcess.freePort();
    var timeout = Duration.ofMillis(700);
    var zero = on(0, 4, port, timeout, World::rank);
    var three = on(3, 4, port, timeout, World::rank);
    assertThat(messageOf(zero)).contains("waited more than 700 ms for ranks 1, 2 (hosts)");
    assertThat(messageOf(three)).contains("ranks 1, 2");
  }

  @Test
  void aRankThatNeverGivesIsNamed() {
    int port = ChildProcess.freePort();
    var futures = new ArrayList<CompletableFuture<Integer>>();
    for (int rank = 0; rank < 3; rank++) {
      futures.add(
          on(
              rank,
              3,
              port,
              Duration.ofSeconds(2),
              world -> {
                if (world.rank() == 1) {
                  assertThatThrownBy(() -> world.get("nothing")).isInstanceOf(RunException.class);
                } else {
                  world.barrier("the plan's digest");
                }
                return 0;
              }));
    }
    assertThat(messageOf(futures.get(0))).contains("for rank 1 (the plan's digest)");
    assertThat(messageOf(futures.get(2))).contains("for rank 1 (the plan's digest)");
  }

  @Test
  void withoutRankZeroNobodyWaitsForEver() {
    assertThat(messageOf(on(1, 2, ChildProcess.freePort(), Duration.ofMillis(500), World::rank)))
        .contains("rank 1 cannot connect to rank 0 at localhost, port")
        .contains("within 500 ms");
  }

  @Test
  void aFailureReachesAllAtOnce() {
    var all =
        onAll(
            3,
            ChildProcess.freePort(),
            world -> {
              if (world.rank() == 2) {
                world.fail(1, "rank 2: the input 'x' is missing");
              }
              long begin = System.nanoTime();
              assertThatThrownBy(() -> world.get("never"))
                  .isInstanceOf(RunException.class)
                  .hasMessage("rank 2: the input 'x' is missing");
              assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(TIMEOUT);
              return world.failure().orElseThrow();
            });
    assertThat(all)
        .allSatisfy(
            future ->
                assertThat(future.join())
                    .isEqualTo(new Failure(2, 1, "rank 2: the input 'x' is missing")));
  }

  @Test
  void aLaterSessionWorksOnTheSamePort() {
    int port = ChildProcess.freePort();
    var all =
        onAll(
            3,
            port,
            first -> {
              first.barrier("first");
              // Left open in rank 0, so that the others find the earlier store first.
              if (first.rank() == 0) {
                sleep(300);
              }
              first.close();
              try (var second = World.join(environment(first.rank(), 3, port), TIMEOUT)) {
                return second.gather("second", new byte[] {1}).size();
              }
            });
    assertThat(all).allSatisfy(future -> assertThat(future.join()).isEqualTo(3));
  }

  @Test
  void anotherRunOnThePortIsRefused() {
    int port = ChildProcess.freePort();
    var all =
        onAll(
            2,
            port,
            world -> {
              world.barrier("begin");
              if (world.rank() == 1) {
                var other =
                    new LaunchEnvironment(Launcher.TORCHRUN, 1, 2, 1, "localhost", port, "b");
                assertThatThrownBy(() -> World.join(other, Duration.ofMillis(400)))
                    .hasMessageContaining("another run has this port");
                var larger = environment(1, 3, port);
                assertThatThrownBy(() -> World.join(larger, Duration.ofMillis(400)))
                    .hasMessageContaining("the run there has 2 processes, not 3");
                var same = environment(0, 2, port);
                assertThatThrownBy(() -> World.join(same, Duration.ofMillis(400)))
                    .hasMessageContaining("another run may have it; set SYMPLAN_STORE_PORT");
              }
              world.barrier("end");
              return 0;
            });
    assertThat(all).allSatisfy(future -> assertThat(future.join()).isZero());
  }

  @Test
  void garbageOnThePortDoesNoHarm() throws IOException {
    int port = ChildProcess.freePort();
    var waiting = on(0, 2, port, TIMEOUT, World::size);
    var garbage =
        List.of(
            bytes("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
            new byte[1000],
            bytes("SYMPLAN\n\0\0\0\7" + "x".repeat(50)),
            bytes("SYM"));
    for (var bytes : garbage) {
      try (var socket = connect(port)) {
        socket.getOutputStream().write(bytes);
      }
    }
    try (var silent = connect(port)) {
      assertThat(on(1, 2, port, TIMEOUT, World::size).join()).isEqualTo(2);
      assertThat(silent.isConnected()).isTrue();
    }
    assertThat(waiting.join()).isEqualTo(2);
  }

  private static Socket connect(int port) {
    for (int i = 0; i < 200; i++) {
      try {
        return new Socket(InetAddress.getLoopbackAddress(), port);
      } catch (IOException e) {
        sleep(20);
      }
    }
    throw new AssertionError("nobody listens");
  }

  @Test
  void aStrangerOnThePortIsNoStore() throws IOException {
    try (var stranger = new ServerSocket(0, 10, InetAddress.getLoopbackAddress())) {
      var thread =
          Thread.ofVirtual()
              .start(
                  () -> {
                    while (!stranger.isClosed()) {
                      try (var socket = stranger.accept()) {
                        socket.getOutputStream().write(bytes("220 mail ready, what is it?\r\n"));
                      } catch (IOException e) {
                        return;
                      }
                    }
                  });
      assertThat(messageOf(on(1, 2, stranger.getLocalPort(), Duration.ofMillis(300), World::rank)))
          .contains("cannot connect to rank 0");
      assertThat(thread.isAlive()).isTrue();
    }
  }

  @Test
  void nothingWorksOnceItIsClosed() {
    var all =
        onAll(
            1,
            ChildProcess.freePort(),
            world -> {
              world.close();
              assertThatThrownBy(() -> world.barrier("x"))
                  .isInstanceOf(IllegalStateException.class);
              return 0;
            });
    assertThat(all.getFirst().join()).isZero();
  }

  static void sleep(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
