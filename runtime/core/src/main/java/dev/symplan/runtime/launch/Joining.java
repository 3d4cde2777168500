package dev.symplan.runtime.launch;

import dev.symplan.ir.diag.Units;
import dev.symplan.runtime.failure.Failure;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Handshake.Answer;
import dev.symplan.runtime.launch.Handshake.Proofs;
import dev.symplan.runtime.launch.Handshake.Reply;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.Socket;
import java.net.SocketException;
import java.net.UnknownHostException;
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
  private final Duration silence;
  private final Host host;
  private final Handshake handshake;
  private final Secret secret;
  private final long end;

  private Joining(LaunchEnvironment environment, Duration timeout, Duration silence) {
    this.environment = environment;
    this.timeout = timeout;
    this.silence = silence;
    this.host = Host.here(environment.hostId());
    this.handshake = Handshake.of(environment, host.name());
    this.secret = environment.access().secret().orElse(Secret.NONE);
    this.end = System.nanoTime() + timeout.toNanos();
  }

  /**
   * @param silence how long a process may say nothing, the same for all
   */
  static World join(LaunchEnvironment environment, Duration timeout, Duration silence) {
    return new Joining(environment, timeout, silence).join();
  }

  private World join() {
    var keeper = resolve(environment.host(), "of rank 0");
    var store = environment.rank() == 0 ? Optional.of(listen(keeper)) : Optional.<Store>empty();
    if (store.isEmpty()) {
      requireSecret(keeper);
    }
    try {
      // The name that others know rank 0 by need not be known on its own host.
      var world = connect(store, store.map(Store::address).orElse(keeper));
      try {
        world.meet(host);
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

  /** Other hosts reach an address that is not a loopback address. */
  private void requireSecret(InetAddress address) {
    var access = environment.access();
    if (!address.isLoopbackAddress() && access.secret().isEmpty() && !access.insecure()) {
      throw new RunException(
          ("rank 0 at %s is open to other hosts without a secret: set %s, or %s to a file with mode"
               + " 0600, to the same value for all processes; in a trusted network, --insecure is"
               + " enough")
              .formatted(address.getHostAddress(), Secret.TOKEN, Secret.TOKEN_FILE));
    }
  }

  private InetAddress resolve(String name, String whose) {
    try {
      return InetAddress.getByName(name);
    } catch (UnknownHostException e) {
      throw new RunException(
          "rank %s cannot resolve the host '%s' %s".formatted(environment.rank(), name, whose), e);
    }
  }

  private Store listen(InetAddress keeper) {
    var wanted = environment.access().address();
    var address = wanted.isEmpty() ? keeper : resolve(wanted, "of " + StoreAccess.ADDRESS);
    requireSecret(address);
    if (!isHere(address)) {
      throw new RunException(
          "rank 0 cannot listen at %s: %s is not an address of its host; set %s to one, or to 0.0.0.0 for all"
              .formatted(
                  wanted.isEmpty() ? environment.host() : wanted,
                  address.getHostAddress(),
                  StoreAccess.ADDRESS));
    }
    var portTimeout = timeout.compareTo(PORT_TIMEOUT) < 0 ? timeout : PORT_TIMEOUT;
    return Store.listen(
        new InetSocketAddress(address, environment.port()),
        handshake,
        secret,
        portTimeout,
        silence);
  }

  private static boolean isHere(InetAddress address) {
    try {
      return address.isAnyLocalAddress()
          || address.isLoopbackAddress()
          || NetworkInterface.getByInetAddress(address) != null;
    } catch (SocketException e) {
      // To bind it shows.
      return true;
    }
  }

  private World connect(Optional<Store> store, InetAddress keeper) {
    var retry = FIRST_RETRY;
    // The last answer, which says more than that later nobody listens.
    var answer = Optional.<String>empty();
    while (true) {
      String problem;
      boolean isFinal = false;
      var socket = new Socket();
      try {
        socket.connect(
            new InetSocketAddress(keeper, environment.port()),
            Math.toIntExact(CONNECTING.toMillis()));
        var introduction = new Introduction(socket, Connection.SILENCE);
        handshake.write(introduction.out());
        var reply = Reply.read(introduction.in());
        if (reply.answer() == Answer.CHALLENGE) {
          var proofs = Proofs.of(secret, handshake, reply.code());
          introduction.out().write(proofs.ofProcess().asBytes());
          introduction.out().flush();
          reply = Reply.read(introduction.in());
          if (reply.answer() == Answer.WELCOME && reply.code().equals(proofs.ofStore())) {
            var channel =
                introduction.channel(
                    new Seal(proofs.fromStore().asBytes()),
                    new Seal(proofs.fromProcess().asBytes()),
                    silence);
            return new World(environment, timeout, store, channel, silence);
          }
        }
        problem =
            reply.reason().isEmpty()
                ? "the program that listens there does not know the secret"
                : reply.reason();
        answer = Optional.of(problem);
        isFinal = reply.answer() == Answer.NEVER;
      } catch (IOException e) {
        problem = e.getMessage() == null ? e.toString() : e.getMessage();
      }
      Introduction.close(socket);
      if (isFinal || System.nanoTime() + retry.toNanos() > end) {
        throw new RunException(
            "rank %s cannot connect to rank 0 at %s, port %s, within %s: %s"
                .formatted(
                    environment.rank(),
                    environment.host(),
                    environment.port(),
                    Units.duration(timeout),
                    answer.orElse(problem)));
      }
      Waiting.sleep(retry);
      retry = retry.multipliedBy(2).compareTo(LAST_RETRY) < 0 ? retry.multipliedBy(2) : LAST_RETRY;
    }
  }
}
