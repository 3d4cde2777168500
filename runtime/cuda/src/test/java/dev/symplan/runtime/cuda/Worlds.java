package dev.symplan.runtime.cuda;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.LaunchEnvironment;
import dev.symplan.runtime.launch.LaunchEnvironment.Launcher;
import dev.symplan.runtime.launch.World;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/** Processes of one run that pass handles to each other: threads here, with a world for each. */
final class Worlds {
  static final Duration TIMEOUT = Duration.ofSeconds(20);

  private Worlds() {}

  /** {@return the message of the failure of each rank; empty if it has none} */
  static List<String> failures(int ranks, Consumer<World> each) {
    return failures(ranks, _ -> "", each);
  }

  /**
   * {@return the same}
   *
   * @param host the name by which the host of a rank is known; empty for its own
   */
  static List<String> failures(int ranks, IntFunction<String> host, Consumer<World> each) {
    assumeTrue(Files.isDirectory(Path.of("/proc/self/fd")), "only Linux has such descriptors");
    int port = ChildProcess.freePort();
    try (var threads = Executors.newCachedThreadPool()) {
      return IntStream.range(0, ranks)
          .mapToObj(
              rank ->
                  CompletableFuture.supplyAsync(
                      () -> failure(rank, ranks, port, host.apply(rank), each), threads))
          .toList()
          .stream()
          .map(CompletableFuture::join)
          .toList();
    }
  }

  private static String failure(int rank, int ranks, int port, String host, Consumer<World> each) {
    var environment =
        new LaunchEnvironment(Launcher.TORCHRUN, rank, ranks, rank, "localhost", port, "job")
            .withHostId(host);
    try (var world = World.join(environment, TIMEOUT)) {
      each.accept(world);
      return "";
    } catch (RunException e) {
      return Objects.requireNonNull(e.getMessage());
    }
  }
}
