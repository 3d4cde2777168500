package dev.symplan.runtime.launch;

import dev.symplan.ir.diag.Units;
import dev.symplan.runtime.failure.Failure;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Handshake.Answer;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;

/** Lets a process join a {@link World}: rank 0 opens the store, and all ranks connect to it. */
final class Joining {
  private static final Duration FIRST_RETRY = Duration.ofMillis(20);
  private static final Duration LAST_RETRY = Duration.ofMillis(500);
  private static final Duration CONNECTING = Duration.ofSeconds(2);

  /** How long a port may still be an earlier session's. */
  private static final Duration PORT_TIMEOUT = Duration.ofSeconds(5);

  private final LaunchEnvironment environment;
  private final Duration timeout;
  private final Handshake handshake;
  private final long end;

  private Joining(LaunchEnvironment environment, Duration timeout) {
    this.environment = environment;
    this.timeout = timeout;
    this.handshake = Handshake.of(environment.job(), environment.rank(), environment.size());
    this.end = System.nanoTime() + timeout.toNanos();
  }

  static World join(LaunchEnvironment environment, Duration timeout) {
    return new Joining(environment, timeout).join();
  }

  private World join() {
    var address = address();
    var store = environment.rank() == 0 ? Optional.of(listen(address)) : Optional.<Store>empty();
    try {
      // The name that others know rank 0 by need not be known on its own host.
      var keeper =
          store.isPresent() && !address.isLoopbackAddress()
              ? InetAddress.getLoopbackAddress()
              : address;
      var world = connect(store, keeper);
      try {
        world.meet(host());
      } catch (RunException e) {
        world.fail(Failure.RUN_FAILED, Objects.requireNonNull(e.getMessage()));
        world.close();
        throw e;
      }
      return world;
    } catch (RunException e) {
      store.ifPresent(Store::close);
      throw e;
    }
  }

  private InetAddress address() {
    try {
      return InetAddress.getByName(environment.host());
    } catch (UnknownHostException e) {
      throw new RunException(
          "rank %s cannot resolve the host '%s' of rank 0"
              .formatted(environment.rank(), environment.host()),
          e);
    }
  }

  private Store listen(InetAddress address) {
    var portTimeout = timeout.compareTo(PORT_TIMEOUT) < 0 ? timeout : PORT_TIMEOUT;
    return Store.listen(address, environment.port(), handshake, portTimeout);
  }

  private World connect(Optional<Store> store, InetAddress keeper) {
    var retry = FIRST_RETRY;
    while (true) {
      String problem;
      boolean isFinal = false;
      var socket = new Socket();
      try {
        socket.connect(
            new InetSocketAddress(keeper, environment.port()),
            Math.toIntExact(CONNECTING.toMillis()));
        socket.setSoTimeout(Math.toIntExact(Connection.SILENCE.toMillis()));
        var in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
        var out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
        handshake.write(out);
        var reply = Handshake.Reply.read(in);
        if (reply.answer() == Answer.WELCOME) {
          return new World(environment, timeout, store, socket, in, out);
        }
        problem = reply.reason();
        isFinal = reply.answer() == Answer.NEVER;
      } catch (IOException e) {
        problem = e.getMessage() == null ? e.toString() : e.getMessage();
      }
      Connection.close(socket);
      if (isFinal || System.nanoTime() + retry.toNanos() > end) {
        throw new RunException(
            "rank %s cannot connect to rank 0 at %s, port %s, within %s: %s"
                .formatted(
                    environment.rank(),
                    environment.host(),
                    environment.port(),
                    Units.duration(timeout),
                    problem));
      }
      Waiting.sleep(retry);
      retry = retry.multipliedBy(2).compareTo(LAST_RETRY) < 0 ? retry.multipliedBy(2) : LAST_RETRY;
    }
  }

  /** Identifies this host, also where containers give hosts the same name. */
  private static String host() {
    var boot = Path.of("/proc/sys/kernel/random/boot_id");
    try {
      return Files.isReadable(boot)
          ? Files.readString(boot).strip()
          : InetAddress.getLocalHost().getHostName();
    } catch (IOException e) {
      return "unknown";
    }
  }
}
