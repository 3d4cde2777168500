package dev.symplan.runtime.launch;

import dev.symplan.ir.diag.Units;
import dev.symplan.runtime.failure.Failure;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Frame.Kind;
import dev.symplan.runtime.launch.Handshake.Answer;
import dev.symplan.runtime.launch.Handshake.Proofs;
import dev.symplan.runtime.launch.Handshake.Reply;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The values that the processes of a run share under keys, and the news that one process has
 * failed. Rank 0 keeps the store.
 *
 * <p>A rank that disconnects without signing off has failed. A rank joins only once: a later
 * session has its own store.
 */
final class Store implements AutoCloseable {

  /** The time that a new connection gets to identify itself. */
  private static final Duration INTRODUCTION = Duration.ofSeconds(5);

  private static final int MAX_STRANGERS = 64;

  /** The most bytes of values, and the most unanswered questions, at once. */
  private static final long MAX_BYTES = 1L << 30;

  private static final int MAX_QUESTIONS = 1 << 22;
  private static final Duration RETRY = Duration.ofMillis(100);

  private static final Duration DRAINING = Duration.ofSeconds(5);
  private static final Duration DRAINING_STEP = Duration.ofMillis(2);

  private record Waiter(Connection connection, int number) {}

  private static final class Value {
    private final byte[] data;

    /** The number of questions still to come; 0 if they are not counted. */
    private int left;

    Value(byte[] data, int left) {
      this.data = data;
      this.left = left;
    }
  }

  private final ServerSocket listener;
  private final Handshake expected;
  private final Secret secret;
  private final Duration silence;

  /** The oldest makes room for the next one. */
  private final Set<Socket> strangers = new LinkedHashSet<>();

  private final Map<String, Value> values = new HashMap<>();
  private long bytes;
  private final Map<String, List<Waiter>> waiters = new HashMap<>();
  private int questions;
  private final @Nullable Connection[] connections;
  private final String[] hosts;
  private final boolean[] left;
  private Optional<Failure> failure = Optional.empty();
  private volatile Optional<String> turnedAway = Optional.empty();

  private Store(ServerSocket listener, Handshake expected, Secret secret, Duration silence) {
    this.listener = listener;
    this.expected = expected;
    this.secret = secret;
    this.silence = silence;
    this.hosts = new String[expected.size()];
    Arrays.fill(hosts, "");
    this.connections = new @Nullable Connection[expected.size()];
    this.left = new boolean[expected.size()];
  }

  /**
   * Opens a store.
   *
   * @param address where it listens, and nowhere else; port 0 for any
   * @param expected the greeting of rank 0, which those of the others have to fit
   * @param secret of the run
   * @param timeout how long to wait for the port: an earlier session may still have it
   * @param silence how long a process may say nothing
   * @throws RunException when the address cannot be had
   */
  static Store listen(
      InetSocketAddress address,
      Handshake expected,
      Secret secret,
      Duration timeout,
      Duration silence) {
    long end = System.nanoTime() + timeout.toNanos();
    while (true) {
      try {
        var listener = new ServerSocket();
        listener.setReuseAddress(true);
        listener.bind(address, expected.size() + MAX_STRANGERS);
        var store = new Store(listener, expected, secret, silence);
        Thread.ofPlatform().daemon().name("symplan-store").start(store::accept);
        return store;
      } catch (BindException e) {
        if (System.nanoTime() > end) {
          throw new RunException(
              "rank 0 cannot listen on port %s of %s (%s): another run may have it; set %s"
                  .formatted(
                      address.getPort(),
                      address.getAddress().getHostAddress(),
                      e.getMessage(),
                      LaunchEnvironment.STORE_PORT),
              e);
        }
        Waiting.sleep(RETRY);
      } catch (IOException e) {
        throw new RunException(
            "rank 0 cannot listen on port %s: %s".formatted(address.getPort(), e.getMessage()), e);
      }
    }
  }

  /** {@return how the last process differed that was not let in; empty if all were} */
  Optional<String> turnedAway() {
    return turnedAway;
  }

  /** {@return where rank 0 itself finds it} */
  InetAddress address() {
    var address = listener.getInetAddress();
    return address.isAnyLocalAddress() ? InetAddress.getLoopbackAddress() : address;
  }

  private void accept() {
    while (!listener.isClosed()) {
      try {
        var socket = listener.accept();
        meet(socket);
        Thread.ofPlatform().daemon().name("symplan-store-new").start(() -> admit(socket));
      } catch (IOException e) {
        // One that is gone again, or the end of the store.
        Waiting.sleep(Duration.ofMillis(listener.isClosed() ? 0 : 10));
      }
    }
  }

  private void meet(Socket socket) {
    synchronized (strangers) {
      if (strangers.size() == MAX_STRANGERS) {
        var oldest = strangers.iterator().next();
        strangers.remove(oldest);
        Introduction.close(oldest);
      }
      strangers.add(socket);
    }
  }

  private void admit(Socket socket) {
    try {
      var introduction = new Introduction(socket, INTRODUCTION);
      var refusal = admit(introduction);
      if (refusal.isPresent()) {
        refusal.get().write(introduction.out());
        Introduction.close(socket);
      }
    } catch (IOException | RuntimeException _) {
      // A stranger, or one that is gone again.
      Introduction.close(socket);
    } finally {
      synchronized (strangers) {
        strangers.remove(socket);
      }
    }
  }

  /** {@return the reply to a process that does not come in; empty if it has come in} */
  private Optional<Reply> admit(Introduction introduction) throws IOException {
    int version = Handshake.readVersion(introduction.in());
    if (version != Handshake.VERSION) {
      return refused(
          Answer.NEVER,
          "rank 0 runs another version of Symplan: its store's protocol is %s, not %s"
              .formatted(Handshake.VERSION, version));
    }
    var guest = Handshake.read(introduction.in());
    var challenge = Handshake.newNonce();
    Reply.challenge(challenge).write(introduction.out());
    var proofs = Proofs.of(secret, guest, challenge);
    if (!Handshake.readCode(introduction.in()).equals(proofs.ofProcess())) {
      turnedAway = Optional.of("another secret");
      return refused(
          Answer.LATER,
          "rank 0 there has another secret: %s or %s must be the same for all processes; or another run has this port"
              .formatted(Secret.TOKEN, Secret.TOKEN_FILE));
    }
    var refusal = refusal(guest);
    return refusal.isPresent() ? refusal : welcome(guest, introduction, proofs);
  }

  private Optional<Reply> welcome(Handshake guest, Introduction introduction, Proofs proofs)
      throws IOException {
    int rank = guest.rank();
    var channel =
        introduction.channel(
            new Seal(proofs.fromProcess().asBytes()),
            new Seal(proofs.fromStore().asBytes()),
            silence);
    var connection =
        new Connection(
            channel,
            silence,
            "symplan-store-" + rank,
            frame -> take(rank, frame),
            reason -> ended(rank, reason));
    if (!enter(guest, connection)) {
      return refused(Answer.LATER, "rank %s is already there".formatted(rank));
    }
    try {
      new Reply(Answer.WELCOME, "", proofs.ofStore()).write(introduction.out());
      connection.start();
    } catch (IOException e) {
      connection.close();
      ended(rank, "its connection is lost");
    }
    return Optional.empty();
  }

  private static Optional<Reply> refused(Answer answer, String reason) {
    return Optional.of(Reply.refusal(answer, reason));
  }

  private Optional<Reply> refusal(Handshake guest) {
    if (guest.size() != expected.size()) {
      turnedAway = Optional.of("a WORLD_SIZE of " + guest.size());
      return refused(
          Answer.LATER,
          "the run there has %s, not %s"
              .formatted(Units.count(expected.size(), "process"), guest.size()));
    }
    if (!guest.job().equals(expected.job())) {
      turnedAway = Optional.of("another job's name");
      return refused(Answer.LATER, "another run has this port");
    }
    return guest.rank() < 0 || guest.rank() >= expected.size()
        ? refused(Answer.NEVER, "rank %s does not exist".formatted(guest.rank()))
        : Optional.empty();
  }

  private synchronized boolean enter(Handshake guest, Connection connection) {
    int rank = guest.rank();
    if (connections[rank] != null || listener.isClosed()) {
      return false;
    }
    connections[rank] = connection;
    hosts[rank] = guest.host();
    failure.ifPresent(known -> connection.send(message(known)));
    return true;
  }

  private synchronized void take(int rank, Frame frame) {
    var connection = connections[rank];
    if (connection == null) {
      return;
    }
    switch (frame.kind()) {
      case SET -> keep(frame);
      case GET -> {
        if (values.containsKey(frame.key())) {
          answer(frame.key(), new Waiter(connection, frame.number()));
        } else if (++questions > MAX_QUESTIONS) {
          throw new IllegalStateException("too many questions without an answer");
        } else {
          waiters
              .computeIfAbsent(frame.key(), _ -> new ArrayList<>())
              .add(new Waiter(connection, frame.number()));
        }
      }
      case FAIL -> fail(new Failure(rank, frame.number(), frame.text()));
      case BYE -> {
        left[rank] = true;
        broadcast(Frame.of(Kind.LEFT, rank));
      }
      case VALUE, PING, FAILED, LEFT ->
          throw new IllegalStateException(frame.kind() + " goes the other way");
    }
  }

  private void keep(Frame frame) {
    var value = new Value(frame.data(), frame.number());
    bytes += frame.data().length;
    if (bytes > MAX_BYTES) {
      throw new IllegalStateException(
          "the store would have %s bytes, but takes %s".formatted(bytes, MAX_BYTES));
    }
    if (values.putIfAbsent(frame.key(), value) != null) {
      throw new IllegalStateException("'%s' twice".formatted(frame.key()));
    }
    var waiting = waiters.remove(frame.key());
    if (waiting != null) {
      questions -= waiting.size();
      waiting.forEach(waiter -> answer(frame.key(), waiter));
    }
  }

  /** The last one who is expected to ask takes the value away. */
  private void answer(String key, Waiter waiter) {
    var value = values.get(key);
    if (value == null) {
      throw new IllegalStateException("'%s' was asked for too often".formatted(key));
    }
    waiter.connection().send(Frame.of(Kind.VALUE, waiter.number(), "", value.data));
    if (value.left == 1) {
      values.remove(key);
      bytes -= value.data.length;
    } else if (value.left > 1) {
      value.left--;
    }
  }

  private synchronized void ended(int rank, String reason) {
    if (!left[rank]) {
      fail(
          new Failure(
              rank,
              Failure.RUN_FAILED,
              "the process of rank %s%s has ended or hangs: %s"
                  .formatted(rank, onHost(rank), reason)));
    }
  }

  /** The name of a host matters only if there are several. */
  private String onHost(int rank) {
    return Arrays.stream(hosts).filter(host -> !host.isEmpty()).distinct().count() > 1
        ? " on host " + hosts[rank]
        : "";
  }

  /** The first failure counts: others follow from it. */
  private void fail(Failure next) {
    if (failure.isEmpty()) {
      failure = Optional.of(next);
      broadcast(message(next));
    }
  }

  private static Frame message(Failure failure) {
    return Frame.of(
        Kind.FAILED,
        failure.rank(),
        Integer.toString(failure.code()),
        failure.text().getBytes(StandardCharsets.UTF_8));
  }

  private void broadcast(Frame frame) {
    for (var connection : connections) {
      if (connection != null) {
        connection.send(frame);
      }
    }
  }

  /**
   * Accepts no more ranks, and waits a moment until the other ranks have left, too: they may not
   * have what they asked for. Ranks that stay are served until this process ends.
   */
  @Override
  public void close() {
    try {
      listener.close();
    } catch (IOException e) {
      throw new RunException("the store cannot be closed: " + e.getMessage(), e);
    }
    for (int i = 0; i < DRAINING.dividedBy(DRAINING_STEP) && isNeeded(); i++) {
      Waiting.sleep(DRAINING_STEP);
    }
  }

  private synchronized boolean isNeeded() {
    for (int rank = 0; rank < connections.length; rank++) {
      var connection = connections[rank];
      if (connection != null && connection.isOpen() && (!left[rank] || connection.hasUnsent())) {
        return true;
      }
    }
    return false;
  }
}
