package dev.symplan.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.testkit.ChildProcess;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.LaunchEnvironment.Launcher;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Who comes into a store, and that nobody else changes anything. */
@Timeout(60)
class StoreAccessTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(20);
  private static final Duration SHORT = Duration.ofMillis(400);
  private static final Secret SECRET = Secret.of("what all processes know", "here");
  private static final StoreAccess KNOWN = StoreAccess.DEFAULT.withSecret(SECRET);
  private static final int RANKS = 4;

  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final int port = ChildProcess.freePort();

  @AfterEach
  void stop() {
    threads.shutdownNow();
  }

  private LaunchEnvironment environment(int rank, String host) {
    return new LaunchEnvironment(Launcher.TORCHRUN, rank, RANKS, rank, host, port, "job");
  }

  private World join(int rank, StoreAccess access, Duration timeout) {
    return World.join(environment(rank, "127.0.0.1").withAccess(access), timeout);
  }

  private <T> List<CompletableFuture<T>> onAll(StoreAccess access, Function<World, T> work) {
    var futures = new ArrayList<CompletableFuture<T>>();
    for (int rank = 0; rank < RANKS; rank++) {
      int own = rank;
      futures.add(
          CompletableFuture.supplyAsync(
              () -> {
                try (var world = join(own, access, TIMEOUT)) {
                  return work.apply(world);
                }
              },
              threads));
    }
    return futures;
  }

  /** Two gatherings, with something that rank 3 does in between. */
  private void undisturbed(StoreAccess access, Runnable between) {
    var sizes =
        onAll(
            access,
            world -> {
              int first = world.gather("first", new byte[1]).size();
              if (world.rank() == 3) {
                between.run();
              }
              assertThat(world.gather("second", new byte[] {(byte) world.rank()}))
                  .extracting(bytes -> bytes[0])
                  .containsExactly((byte) 0, (byte) 1, (byte) 2, (byte) 3);
              return first;
            });
    assertThat(sizes).allSatisfy(size -> assertThat(size.join()).isEqualTo(RANKS));
  }

  @Test
  void thoseWhoKnowTheSecretComeIn() {
    undisturbed(KNOWN, () -> {});
  }

  @Test
  void whoHasAnotherSecretOrNoneStaysOut() {
    var other = StoreAccess.DEFAULT.withSecret(Secret.of("what strangers believe", "here"));
    undisturbed(
        KNOWN,
        () -> {
          for (var access : List.of(other, StoreAccess.DEFAULT)) {
            assertThatThrownBy(() -> join(2, access, SHORT))
                .isInstanceOf(RunException.class)
                .hasMessageContaining("rank 0 there has another secret: SYMPLAN_TOKEN");
          }
        });
  }

  /** Both sides say it: the others may be on a host that nobody looks at. */
  @Test
  void rankZeroSaysWhyOthersAreMissing() {
    var other = StoreAccess.DEFAULT.withSecret(Secret.of("what strangers believe", "here"));
    var stranger =
        CompletableFuture.runAsync(
            () -> assertThatThrownBy(() -> join(1, other, SHORT)).isInstanceOf(RunException.class),
            threads);
    assertThatThrownBy(() -> join(0, KNOWN, SHORT.plus(SHORT)))
        .hasMessageEndingWith("(hosts); a process with another secret was not let in");
    stranger.join();
  }

  /** That rank 0 is gone says less than what it said before. */
  @Test
  void theReasonThatRankZeroGaveIsKept() throws IOException {
    try (var keeper = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
      Thread.ofVirtual()
          .start(
              () -> {
                try (keeper;
                    var socket = keeper.accept()) {
                  Handshake.Reply.refusal(Handshake.Answer.LATER, "the reason")
                      .write(new DataOutputStream(socket.getOutputStream()));
                  socket.shutdownOutput();
                  socket.getInputStream().readAllBytes();
                } catch (IOException e) {
                  throw new UncheckedIOException(e);
                }
              });
      assertThatThrownBy(() -> join(1, KNOWN, SHORT)).hasMessageEndingWith("the reason");
    }
  }

  @Test
  void whoHasASecretDoesNotComeToThoseWithout() {
    undisturbed(
        StoreAccess.DEFAULT,
        () ->
            assertThatThrownBy(() -> join(2, KNOWN, SHORT))
                .hasMessageContaining("rank 0 there has another secret"));
  }

  @Test
  void aSecondRankThreeStaysOut() {
    undisturbed(
        KNOWN,
        () ->
            assertThatThrownBy(() -> join(3, KNOWN, SHORT))
                .hasMessageContaining("rank 3 is already there"));
  }

  /** Somebody who recorded a handshake cannot use it again: each has a challenge of its own. */
  @Test
  void aRecordedProofIsOfNoUse() {
    undisturbed(
        KNOWN,
        () -> {
          var greeting = Handshake.of(environment(2, "127.0.0.1"), "host");
          try (var socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            var in = new DataInputStream(socket.getInputStream());
            var out = new DataOutputStream(socket.getOutputStream());
            greeting.write(out);
            var reply = Handshake.Reply.read(in);
            assertThat(reply.answer()).isEqualTo(Handshake.Answer.CHALLENGE);
            var recorded = Handshake.Proofs.of(SECRET, greeting, Handshake.newNonce());
            out.write(recorded.ofProcess().asBytes());
            out.flush();
            var answer = Handshake.Reply.read(in);
            assertThat(answer.answer()).isEqualTo(Handshake.Answer.LATER);
            assertThat(answer.code().asBytes()).containsOnly(0);
          } catch (IOException e) {
            throw new AssertionError(e);
          }
        });
  }

  /** A program that says WELCOME to everybody learns nothing and is not believed. */
  @Test
  void aStoreWithoutTheSecretIsNotBelieved() throws IOException {
    try (var stranger = new ServerSocket(port, 10, InetAddress.getLoopbackAddress())) {
      var heard = new ArrayList<String>();
      Thread.ofVirtual()
          .start(
              () -> {
                while (!stranger.isClosed()) {
                  try (var socket = stranger.accept()) {
                    var in = new DataInputStream(socket.getInputStream());
                    var out = new DataOutputStream(socket.getOutputStream());
                    Handshake.readVersion(in);
                    Handshake.read(in);
                    var nonce = Handshake.newNonce();
                    Handshake.Reply.challenge(nonce).write(out);
                    heard.add(new String(in.readNBytes(32), StandardCharsets.ISO_8859_1));
                    new Handshake.Reply(Handshake.Answer.WELCOME, "", nonce).write(out);
                  } catch (IOException e) {
                    // The next one, or the end.
                  }
                }
              });
      assertThatThrownBy(() -> join(1, KNOWN, SHORT))
          .hasMessageContaining("the program that listens there does not know the secret");
      assertThat(heard).isNotEmpty().doesNotHaveDuplicates();
    }
  }

  @Test
  void garbageAndHalfOpenConnectionsChangeNothing() {
    var random = new Random(Long.getLong("symplan.seed", 22));
    var sockets = new ArrayList<Socket>();
    undisturbed(
        KNOWN,
        () -> {
          try {
            // More than the store listens to at once: the oldest go.
            for (int i = 0; i < 150; i++) {
              var socket = new Socket(InetAddress.getLoopbackAddress(), port);
              sockets.add(socket);
              socket.getOutputStream().write(garbage(random, i));
              if (i % 3 == 0) {
                socket.shutdownOutput();
              }
            }
          } catch (IOException e) {
            // The store has ended one that it did not like.
          }
          assertThatThrownBy(() -> join(3, KNOWN, TIMEOUT.dividedBy(20)))
              .hasMessageContaining("rank 3 is already there");
        });
    sockets.forEach(Introduction::close);
  }

  /** Silent strangers would have seconds to say who they are, but make room for others. */
  @Test
  void theOldestStrangersGoFirst() {
    undisturbed(
        KNOWN,
        () -> {
          var silent = new ArrayList<Socket>();
          try {
            for (int i = 0; i < 80; i++) {
              silent.add(new Socket(InetAddress.getLoopbackAddress(), port));
            }
            silent.getFirst().setSoTimeout(4000);
            assertThat(silent.getFirst().getInputStream().read()).isEqualTo(-1);
          } catch (IOException e) {
            throw new AssertionError(e);
          } finally {
            silent.forEach(Introduction::close);
          }
        });
  }

  /** Random bytes behind a beginning that is right up to somewhere. */
  private byte[] garbage(Random random, int index) throws IOException {
    var bytes = new ByteArrayOutputStream();
    try (var out = new DataOutputStream(bytes)) {
      Handshake.of(environment(index % RANKS, "127.0.0.1"), "h").write(out);
    }
    var right = bytes.toByteArray();
    var garbage = new byte[right.length + random.nextInt(200)];
    random.nextBytes(garbage);
    System.arraycopy(right, 0, garbage, 0, random.nextInt(right.length + 1));
    return garbage;
  }

  @Test
  void severalHostsNeedASecret() {
    // An address that is not a loopback address; nobody connects to it before the secret is there.
    var open = environment(0, "198.51.100.7");
    for (int rank : List.of(0, 1)) {
      var environment = environment(rank, "198.51.100.7");
      assertThatThrownBy(() -> World.join(environment, SHORT))
          .isInstanceOf(RunException.class)
          .hasMessage(
              "rank 0 at 198.51.100.7 is open to other hosts without a secret: set SYMPLAN_TOKEN,"
                  + " or SYMPLAN_TOKEN_FILE to a file with mode 0600, to the same value for all"
                  + " processes; in a trusted network, --insecure is enough");
    }
    for (var access : List.of(KNOWN, StoreAccess.DEFAULT.withInsecure(true))) {
      assertThatThrownBy(() -> World.join(open.withAccess(access), SHORT))
          .hasMessageContaining(
              "198.51.100.7 is not an address of its host; set SYMPLAN_STORE_ADDRESS");
    }
  }

  /** However the others find rank 0. */
  @Test
  void rankZeroThatListensElsewhereNeedsASecret() {
    var everywhere = new StoreAccess(Optional.empty(), false, "0.0.0.0");
    assertThatThrownBy(() -> join(0, everywhere, SHORT))
        .hasMessageStartingWith("rank 0 at 0.0.0.0 is open to other hosts");
  }

  @Test
  void theStoreListensOnlyWhereItIsAsked() throws IOException {
    var environment = new LaunchEnvironment(Launcher.TORCHRUN, 0, 1, 0, "127.0.22.1", port, "job");
    try (var world = World.join(environment, TIMEOUT)) {
      assertThat(world.gather("alone", new byte[0])).hasSize(1);
      for (var elsewhere : List.of("127.0.0.1", "127.0.22.2")) {
        assertThatThrownBy(() -> new Socket(elsewhere, port).close())
            .isInstanceOf(ConnectException.class);
      }
      new Socket("127.0.22.1", port).close();
    }
  }

  @Test
  void rankZeroMayListenElsewhere() {
    var access = new StoreAccess(Optional.of(SECRET), false, "0.0.0.0");
    undisturbed(
        access,
        () -> {
          try {
            new Socket("127.0.22.2", port).close();
          } catch (IOException e) {
            throw new AssertionError(e);
          }
        });
  }
}
