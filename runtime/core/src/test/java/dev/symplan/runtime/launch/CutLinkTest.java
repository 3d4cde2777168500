package dev.symplan.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.LaunchEnvironment.Launcher;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A network that suddenly carries nothing, as if a host lost its power: no connection is closed.
 */
@Timeout(60)
class CutLinkTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(30);

  /** Long enough that a busy machine does not seem silent. */
  private static final Duration SILENCE = Duration.ofSeconds(4);

  private static final int RANKS = 4;
  private static final int FAR = 3;

  /** Carries bytes both ways until it is cut; the connections stay open. */
  private static final class Link implements AutoCloseable {
    private final ServerSocket listener = new ServerSocket(0, 8, InetAddress.getLoopbackAddress());
    private final List<Socket> sockets = new ArrayList<>();
    private volatile boolean cut;

    Link(int to) throws IOException {
      Thread.ofVirtual().start(() -> accept(to));
    }

    private void accept(int to) {
      while (!listener.isClosed()) {
        try {
          var near = listener.accept();
          var far = new Socket(InetAddress.getLoopbackAddress(), to);
          sockets.add(near);
          sockets.add(far);
          Thread.ofPlatform().daemon().start(() -> carry(near, far));
          Thread.ofPlatform().daemon().start(() -> carry(far, near));
        } catch (IOException e) {
          // Rank 0 does not listen yet, or the end.
          sockets.forEach(Introduction::close);
        }
      }
    }

    private void carry(Socket from, Socket to) {
      var bytes = new byte[4096];
      try {
        for (int count = from.getInputStream().read(bytes);
            count >= 0;
            count = from.getInputStream().read(bytes)) {
          if (!cut) {
            to.getOutputStream().write(bytes, 0, count);
          }
        }
      } catch (IOException e) {
        // The end of the test.
      }
    }

    @Override
    public void close() throws IOException {
      listener.close();
      sockets.forEach(Introduction::close);
    }
  }

  @Test
  void bothSidesNameTheOther() throws IOException {
    int port = ChildProcess.freePort();
    var met = new CountDownLatch(RANKS);
    try (var link = new Link(port);
        var threads = Executors.newCachedThreadPool()) {
      var said =
          IntStream.range(0, RANKS)
              .mapToObj(
                  rank ->
                      CompletableFuture.supplyAsync(
                          () -> heard(rank, rank == FAR ? link.listener.getLocalPort() : port, met),
                          threads))
              .toList();
      await(met);
      link.cut = true;
      for (int rank = 0; rank < RANKS; rank++) {
        assertThat(said.get(rank).join())
            .isEqualTo(
                rank == FAR
                    ? "the process of rank 0 on host near, which holds the shared store, has ended"
                        + " or hangs: it has sent nothing for 4 s"
                    : "the process of rank 3 on host far has ended or hangs: it has sent nothing"
                        + " for 4 s");
      }
    }
  }

  private static void await(CountDownLatch met) {
    try {
      met.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static String heard(int rank, int port, CountDownLatch met) {
    var environment =
        new LaunchEnvironment(Launcher.TORCHRUN, rank, RANKS, 0, "127.0.0.1", port, "link")
            .withHostId(rank == FAR ? "far" : "near");
    try (var world = Joining.join(environment, TIMEOUT, SILENCE)) {
      world.barrier("all are here");
      met.countDown();
      world.get("what nobody gives");
      return "no failure";
    } catch (RunException e) {
      return String.valueOf(e.getMessage());
    }
  }
}
