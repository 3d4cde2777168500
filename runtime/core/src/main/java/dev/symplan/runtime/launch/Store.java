package dev.symplan.runtime.launch;

import dev.symplan.ir.diag.Units;
import dev.symplan.runtime.failure.Failure;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Frame.Kind;
import dev.symplan.runtime.launch.Handshake.Answer;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Semaphore;
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
  private static final Duration RETRY = Duration.ofMillis(100);

  private static final Duration DRAINING = Duration.ofSeconds(5);
  private static final Duration DRAINING_STEP = Duration.ofMillis(2);

  private record Waiter(Connection connection, int number) {}

  private final ServerSocket listener;
  private final Handshake expected;
  private final Semaphore strangers = new Semaphore(MAX_STRANGERS);
  private final Map<String, byte[]> values = new HashMap<>();
  private final Map<String, List<Waiter>> waiters = new HashMap<>();
  private final @Nullable Connection[] connections;
  private final boolean[] left;
  private Optional<Failure> failure = Optional.empty();

  private Store(ServerSocket listener, Handshake expected) {
    this.listener = listener;
    this.expected = expected;
    this.connections = new @Nullable Connection[expected.size()];
    this.left = new boolean[expected.size()];
  }

  /**
   * Opens a store.
   *
   * @param port 0 for any
   * @param timeout how long to wait for the port: an earlier session may still have it
   * @throws RunException when the port cannot be had
   */
  static Store listen(InetAddress host, int port, Handshake expected, Duration timeout) {
    long end = System.nanoTime() + timeout.toNanos();
    while (true) {
      try {
        var listener = new ServerSocket();
        listener.setReuseAddress(true);
        listener.bind(
            host.isLoopbackAddress()
                ? new InetSocketAddress(host, port)
                : new InetSocketAddress(port));
        var store = new Store(listener, expected);
        Thread.ofPlatform().daemon().name("symplan-store").start(store::accept);
        return store;
      } catch (BindException e) {
        if (System.nanoTime() > end) {
          throw new RunException(
              "rank 0 cannot listen on port %s (%s): another run may have it; set %s"
                  .formatted(port, e.getMessage(), LaunchEnvironment.STORE_PORT),
              e);
        }
        Waiting.sleep(RETRY);
      } catch (IOException e) {
        throw new RunException(
            "rank 0 cannot listen on port %s: %s".formatted(port, e.getMessage()), e);
      }
    }
  }

  int port() {
    return listener.getLocalPort();
  }

  private void accept() {
    while (!listener.isClosed()) {
      try {
        var socket = listener.accept();
        if (strangers.tryAcquire()) {
          Thread.ofPlatform().daemon().name("symplan-store-new").start(() -> admit(socket));
        } else {
          socket.close();
        }
      } catch (IOException e) {
        // One that is gone again, or the end of the store.
        Waiting.sleep(Duration.ofMillis(listener.isClosed() ? 0 : 10));
      }
    }
  }

  private void admit(Socket socket) {
    try {
      socket.setSoTimeout(Math.toIntExact(INTRODUCTION.toMillis()));
      var in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
      var out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
      var guest = Handshake.read(in);
      var refusal = refusal(guest);
      if (refusal.isPresent()) {
        Handshake.answer(out, refusal.get().answer(), refusal.get().reason());
        socket.close();
        return;
      }
      int rank = guest.rank();
      var connection =
          new Connection(
              socket,
              in,
              out,
              Connection.SILENCE,
              "symplan-store-" + rank,
              frame -> take(rank, frame),
              reason -> ended(rank, reason));
      if (!enter(rank, connection)) {
        Handshake.answer(out, Answer.LATER, "rank %s is already there".formatted(rank));
        socket.close();
        return;
      }
      welcome(rank, out, connection);
    } catch (IOException | RuntimeException _) {
      // A stranger, or one that is gone again.
      Connection.close(socket);
    } finally {
      strangers.release();
    }
  }

  private void welcome(int rank, DataOutputStream out, Connection connection) {
    try {
      Handshake.answer(out, Answer.WELCOME, "");
      connection.start();
    } catch (IOException e) {
      connection.close();
      ended(rank, "its connection is lost");
    }
  }

  private Optional<Handshake.Reply> refusal(Handshake guest) {
    if (guest.version() != Handshake.VERSION) {
      return Optional.of(
          new Handshake.Reply(
              Answer.NEVER,
              "rank 0 runs another version of Symplan: its store's protocol is %s, not %s"
                  .formatted(Handshake.VERSION, guest.version())));
    }
    if (guest.size() != expected.size()) {
      return Optional.of(
          new Handshake.Reply(
              Answer.LATER,
              "the run there has %s, not %s"
                  .formatted(Units.count(expected.size(), "process"), guest.size())));
    }
    if (!guest.job().equals(expected.job())) {
      return Optional.of(new Handshake.Reply(Answer.LATER, "another run has this port"));
    }
    return guest.rank() < 0 || guest.rank() >= expected.size()
        ? Optional.of(new Handshake.Reply(Answer.NEVER, "there is no rank " + guest.rank()))
        : Optional.empty();
  }

  private synchronized boolean enter(int rank, Connection connection) {
    if (connections[rank] != null || listener.isClosed()) {
      return false;
    }
    connections[rank] = connection;
    failure.ifPresent(known -> connection.send(message(known)));
    return true;
  }

  private synchronized void take(int rank, Frame frame) {
    var connection = connections[rank];
    if (connection == null) {
      return;
    }
    switch (frame.kind()) {
      case SET -> {
        if (values.putIfAbsent(frame.key(), frame.data()) != null) {
          throw new IllegalStateException("'%s' twice".formatted(frame.key()));
        }
        var waiting = waiters.remove(frame.key());
        if (waiting != null) {
          waiting.forEach(w -> w.connection().send(value(w.number(), frame.data())));
        }
      }
      case GET -> {
        var data = values.get(frame.key());
        if (data == null) {
          waiters
              .computeIfAbsent(frame.key(), _ -> new ArrayList<>())
              .add(new Waiter(connection, frame.number()));
        } else {
          connection.send(value(frame.number(), data));
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

  private static Frame value(int number, byte[] data) {
    return Frame.of(Kind.VALUE, number, "", data);
  }

  private synchronized void ended(int rank, String reason) {
    if (!left[rank]) {
      fail(
          new Failure(
              rank,
              Failure.RUN_FAILED,
              "the process of rank %s has ended or hangs: %s".formatted(rank, reason)));
    }
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
