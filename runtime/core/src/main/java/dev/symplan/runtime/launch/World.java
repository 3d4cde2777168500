package dev.symplan.runtime.launch;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedSet;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.runtime.failure.Failure;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Frame.Kind;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The processes of a run, one for each rank, as one of them sees the others: it exchanges bytes
 * with them, and learns at once when one of them fails or is gone.
 *
 * <p>The methods that exchange something are called by all ranks in the same order; they may be
 * called by one thread at a time.
 */
public final class World implements AutoCloseable {
  private static final Duration LEAVING = Duration.ofSeconds(1);

  private final LaunchEnvironment environment;
  private final Duration timeout;
  private final Optional<Store> store;
  private final Connection connection;
  private final Map<Integer, CompletableFuture<byte[]>> asked = new ConcurrentHashMap<>();
  private final AtomicInteger questions = new AtomicInteger();
  private final Map<String, Integer> rounds = new HashMap<>();
  private volatile ImmutableList<Host> hosts = ImmutableList.of();
  private final CompletableFuture<Failure> failure = new CompletableFuture<>();
  private volatile boolean keeperLeft;
  private volatile boolean storeIsGone;
  private volatile boolean closed;

  World(
      LaunchEnvironment environment,
      Duration timeout,
      Optional<Store> store,
      Channel channel,
      Duration silence) {
    this.environment = environment;
    this.timeout = timeout;
    this.store = store;
    this.connection = new Connection(channel, silence, "symplan-world", this::take, this::ended);
  }

  /**
   * Meets the other processes.
   *
   * @param timeout how long to wait for others, here and later
   * @throws RunException when not all come in time, naming who is missing; or when rank 0 is open
   *     to other hosts without a secret
   */
  public static World join(LaunchEnvironment environment, Duration timeout) {
    return Joining.join(environment, timeout, Connection.SILENCE);
  }

  /** Begins to listen, and learns where the others are. */
  void meet(Host host) {
    connection.start();
    hosts =
        gather("hosts", host.toBytes()).stream()
            .map(Host::of)
            .collect(ImmutableList.toImmutableList());
  }

  /** {@return this process's rank} */
  public int rank() {
    return environment.rank();
  }

  /** {@return how many processes there are} */
  public int size() {
    return environment.size();
  }

  /** {@return which of the processes of its host this is} */
  public int localRank() {
    return environment.localRank();
  }

  /** {@return the environment that the launcher gave the processes} */
  public LaunchEnvironment environment() {
    return environment;
  }

  /** {@return the host of each rank} */
  public ImmutableList<Host> hosts() {
    return hosts;
  }

  /** {@return the host of each rank, hosts numbered in the order of their first ranks} */
  public Hosts placement() {
    return Host.ofRanks(hosts);
  }

  /** {@return whether all processes are on the same host} */
  public boolean isOneHost() {
    return hosts.stream().map(Host::id).distinct().count() == 1;
  }

  /** {@return the ranks on the host of this one, with this one} */
  public ImmutableSortedSet<Integer> ranksHere() {
    var here = hosts.get(rank()).id();
    return ImmutableSortedSet.copyOf(
        IntStream.range(0, size()).filter(rank -> hosts.get(rank).id().equals(here)).iterator());
  }

  /** {@return why the processes cannot go on together; empty if they can} */
  public Optional<Failure> failure() {
    return failure.isDone() ? Optional.of(failure.resultNow()) : Optional.empty();
  }

  /** Calls somebody when the processes cannot go on together, in a thread that must not wait. */
  public void onFailure(Consumer<Failure> listener) {
    var _ = failure.thenAccept(listener);
  }

  /** {@return the same, for which this waits a while} */
  public Optional<Failure> awaitFailure(Duration most) {
    try {
      return Optional.of(failure.get(most.toNanos(), TimeUnit.NANOSECONDS));
    } catch (TimeoutException e) {
      return Optional.empty();
    } catch (ExecutionException e) {
      throw new IllegalStateException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return failure();
    }
  }

  /**
   * Gives something to all ranks, and takes what they give.
   *
   * @param what its name, for people; the same on all ranks
   * @param own 15 MiB at most
   * @return the bytes of each rank
   * @throws RunException when a rank fails, or not all come in time; the message names who is
   *     missing
   */
  public ImmutableList<byte[]> gather(String what, byte[] own) {
    var round = what + "#" + rounds.merge(what, 1, Integer::sum);
    var futures = new ArrayList<CompletableFuture<byte[]>>();
    for (int rank = 0; rank < size(); rank++) {
      futures.add(ask(key(round, rank)));
    }
    // Behind the questions: when the last rank gives, all are answered, before anyone who got
    // through can fail.
    set(key(round, rank()), own, size());
    var all = CompletableFuture.allOf(futures.toArray(CompletableFuture[]::new));
    await(all, () -> missing(what, futures));
    return futures.stream()
        .map(CompletableFuture::resultNow)
        .collect(ImmutableList.toImmutableList());
  }

  private <T> T await(CompletableFuture<T> future, Supplier<String> late) {
    try {
      return future.get(timeout.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      throw new RunException(late.get(), e);
    } catch (ExecutionException e) {
      throw failed();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new RunException("was interrupted while it waited for other ranks", e);
    }
  }

  private static String key(String round, int rank) {
    return round + "/" + rank;
  }

  private String missing(String what, List<CompletableFuture<byte[]>> futures) {
    var missing = new ArrayList<Integer>();
    for (int rank = 0; rank < futures.size(); rank++) {
      // Where others fail meanwhile, what is still awaited fails, too.
      if (futures.get(rank).state() != Future.State.SUCCESS) {
        missing.add(rank);
      }
    }
    return "rank %s waited more than %s for rank%s %s (%s)%s"
        .formatted(
            rank(),
            Units.duration(timeout),
            missing.size() == 1 ? "" : "s",
            missing.stream().map(Object::toString).collect(Collectors.joining(", ")),
            what,
            store
                .flatMap(Store::turnedAway)
                .map(how -> "; a process with %s was not let in".formatted(how))
                .orElse(""));
  }

  /**
   * Waits until all ranks are here.
   *
   * @throws RunException when a rank fails, or not all come in time
   */
  public void barrier(String what) {
    gather(what, new byte[0]);
  }

  /**
   * Puts something where every rank finds it.
   *
   * @param key that no other rank sets
   */
  public void set(String key, byte[] value) {
    set(key, value, 0);
  }

  /**
   * Puts something where a number of ranks find it.
   *
   * @param key not set by any other process before all have taken it
   * @param takers how often it is taken until it is gone; 0 to keep it
   */
  public void set(String key, byte[] value, int takers) {
    requireUsable();
    connection.send(Frame.of(Kind.SET, takers, key, value));
  }

  /**
   * {@return the bytes that a rank has put under a key, once it has}
   *
   * @throws RunException when a rank fails, or it does not come in time
   */
  public byte[] get(String key) {
    return get(key, "'%s', which no rank gave".formatted(key));
  }

  /**
   * {@return the same}
   *
   * @param whom who or what is waited for, for people
   */
  public byte[] get(String key, String whom) {
    return await(
        ask(key),
        () ->
            "rank %s waited more than %s for %s".formatted(rank(), Units.duration(timeout), whom));
  }

  private CompletableFuture<byte[]> ask(String key) {
    requireUsable();
    int number = questions.incrementAndGet();
    var future = new CompletableFuture<byte[]>();
    asked.put(number, future);
    connection.send(Frame.of(Kind.GET, number, key, new byte[0]));
    if (failure.isDone() || storeIsGone) {
      wakeAll();
    }
    return future;
  }

  private void requireUsable() {
    if (closed) {
      throw new IllegalStateException("the world is closed");
    }
    if (failure.isDone() || storeIsGone) {
      throw failed();
    }
  }

  private RunException failed() {
    return new RunException(failure().map(Failure::text).orElse("rank 0 has left already"));
  }

  /**
   * Tells all ranks that this one cannot go on; the first failure counts.
   *
   * @param code the exit code of the processes
   * @param text for people; it names the rank
   */
  public void fail(int code, String text) {
    if (!closed && !failure.isDone()) {
      connection.send(Frame.of(Kind.FAIL, code, "", text.getBytes(StandardCharsets.UTF_8)));
    }
  }

  private void take(Frame frame) {
    switch (frame.kind()) {
      case VALUE -> {
        var future = asked.remove(frame.number());
        if (future != null) {
          future.complete(frame.data());
        }
      }
      case FAILED -> end(new Failure(frame.number(), Integer.parseInt(frame.key()), frame.text()));
      case LEFT -> keeperLeft |= frame.number() == 0 && rank() != 0;
      case SET, GET, PING, FAIL, BYE ->
          throw new IllegalStateException(frame.kind() + " goes the other way");
    }
  }

  private void ended(String reason) {
    if (keeperLeft) {
      // It serves the remaining ranks for as long as its process runs.
      storeIsGone = true;
      wakeAll();
    } else if (!closed) {
      end(
          new Failure(
              0,
              Failure.RUN_FAILED,
              "the process of rank 0%s, which holds the shared store, has ended or hangs: %s"
                  .formatted(
                      hosts.isEmpty() || isOneHost() ? "" : " on host " + hosts.getFirst().name(),
                      reason)));
    }
  }

  private void end(Failure next) {
    failure.complete(next);
    wakeAll();
  }

  private void wakeAll() {
    asked.forEach(
        (number, future) -> {
          asked.remove(number);
          future.completeExceptionally(failed());
        });
  }

  /** Leaves in good order. */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    connection.leave(LEAVING);
    store.ifPresent(Store::close);
  }
}
