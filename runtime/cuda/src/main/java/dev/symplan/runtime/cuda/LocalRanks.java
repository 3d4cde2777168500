package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.collect.ImmutableSortedSet;
import dev.symplan.runtime.failure.RunException;
import java.time.Duration;
import java.util.Comparator;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/** The ranks of this process, whose GPUs do the same things at the same time. */
final class LocalRanks {

  /** The time that GPUs get to stop when the session has failed. */
  private static final Duration STOPPING = Duration.ofSeconds(2);

  /** The time that a failed session may take to free its resources. */
  private static final Duration FREEING = Duration.ofSeconds(15);

  private static final long LOOK_NANOS = 1_000_000;

  private final SessionFailure ending;
  private final ImmutableSortedMap<Integer, LocalRank> byRank;

  /** The same, to go through without an iterator. */
  private final ImmutableList<LocalRank> all;

  /**
   * @param devices by rank, which of the GPUs that this process sees
   */
  LocalRanks(ImmutableSortedMap<Integer, Integer> devices, SessionFailure ending) {
    this.ending = ending;
    this.byRank =
        devices.entrySet().stream()
            .collect(
                ImmutableSortedMap.toImmutableSortedMap(
                    Comparator.naturalOrder(),
                    Map.Entry::getKey,
                    e -> new LocalRank(e.getKey(), e.getValue(), ending)));
    this.all = byRank.values().asList();
  }

  ImmutableSortedSet<Integer> ranks() {
    return byRank.keySet();
  }

  /**
   * {@return one of them}
   *
   * @throws IllegalArgumentException when it is another process's
   */
  LocalRank get(int rank) {
    var local = byRank.get(rank);
    if (local == null) {
      throw new IllegalArgumentException(
          "rank %s does not belong to this process, which runs %s".formatted(rank, ranks()));
    }
    return local;
  }

  /**
   * Does something on every GPU's thread at once, and waits for all.
   *
   * @return the result of each rank
   * @throws RunException for the first failure of all, which ends the session
   */
  <T> ImmutableSortedMap<Integer, T> onAll(Function<LocalRank, T> task) {
    var results = new ConcurrentSkipListMap<Integer, T>();
    forAll(local -> results.put(local.rank(), task.apply(local)));
    return ImmutableSortedMap.copyOf(results);
  }

  /**
   * Does something on every GPU's thread at once, and waits for all.
   *
   * @throws RunException for the first failure of all, which ends the session
   */
  void forAll(Consumer<LocalRank> task) {
    for (var local : all) {
      local.start(() -> task.accept(local));
    }
    joinAll();
  }

  /**
   * {@return the result of a task of the calling thread, while those of the GPUs make contexts}
   *
   * @throws RunException when a context cannot be had
   */
  <T> T whileContextsAreMade(Supplier<T> task) {
    for (var local : all) {
      local.start(local::makeContext);
    }
    try {
      return task.get();
    } finally {
      joinAll();
    }
  }

  /** Launches a captured graph, of the same number on all, so many times; makes nothing. */
  void run(int graph, int times) {
    for (int i = 0; i < all.size(); i++) {
      all.get(i).startRun(graph, times);
    }
    joinAll();
  }

  /**
   * Brings inputs that were handed out to the GPUs; makes nothing if there are none.
   *
   * @param setup whether to do then what comes once before all runs, and to wait for that
   */
  void begin(boolean setup) {
    if (hasUploads()) {
      forAll(local -> local.copies().upload());
    }
    if (setup) {
      forAll(
          local -> {
            local.gpu().enqueueSetup();
            local.gpu().await();
          });
    }
  }

  private boolean hasUploads() {
    for (int i = 0; i < all.size(); i++) {
      if (all.get(i).copies().hasUploads()) {
        return true;
      }
    }
    return false;
  }

  private void joinAll() {
    for (int i = 0; i < all.size(); i++) {
      try {
        all.get(i).thread().join();
      } catch (RunException e) {
        ending.fail(e);
      }
    }
    if (ending.hasBegun()) {
      throw ending.cause().orElseThrow();
    }
  }

  /** {@return who keeps the others waiting, as far as this process knows; empty if nobody does} */
  String busy() {
    var ranks =
        all.stream()
            .filter(
                local ->
                    !local.thread().isIdle()
                        || local.openGpu().filter(gpu -> !gpu.isIdle(Duration.ZERO)).isPresent())
            .map(local -> "rank " + local.rank())
            .toList();
    return ranks.isEmpty()
        ? ""
        : "; %s %s still busy"
            .formatted(String.join(" and ", ranks), ranks.size() == 1 ? "is" : "are");
  }

  /**
   * Frees everything.
   *
   * @param free false where others may still use what there is: it stays until the process ends
   * @throws RunException when something cannot be freed
   */
  void close(boolean free) {
    try {
      if (ending.hasBegun() || !free) {
        release(free);
      } else {
        forAll(local -> local.gpu().close());
      }
    } finally {
      all.forEach(local -> local.thread().close());
    }
  }

  /**
   * Frees what a failed session has. Only when all GPUs of the process have stopped: until then
   * they may touch each other's memory, which else stays until the process ends.
   */
  private void release(boolean free) {
    // A GPU that has failed does not accept commands, but does not run anything either.
    var _ = attempt(local -> local.openGpu().ifPresent(Gpu::stop), STOPPING);
    if (!attempt(LocalRanks::awaitStop, STOPPING.multipliedBy(2))) {
      ProcessExit.skipLibraries();
    } else if (free) {
      var _ = attempt(local -> local.openGpu().ifPresent(Gpu::close), FREEING);
    }
  }

  private static void awaitStop(LocalRank local) {
    if (local.openGpu().filter(gpu -> !gpu.isIdle(STOPPING)).isPresent()) {
      throw new RunException("rank " + local.rank() + " does not stop");
    }
  }

  /** Does something on every GPU's thread; says whether that went well in time. */
  private boolean attempt(Consumer<LocalRank> task, Duration most) {
    long end = System.nanoTime() + most.toNanos();
    var done = new AtomicInteger();
    for (var local : all) {
      if (!local.thread().isIdle()) {
        return false;
      }
      local
          .thread()
          .start(
              () -> {
                task.accept(local);
                done.incrementAndGet();
              });
    }
    while (!all.stream().allMatch(local -> local.thread().isIdle())) {
      if (System.nanoTime() > end) {
        return false;
      }
      LockSupport.parkNanos(LOOK_NANOS);
    }
    return done.get() == all.size();
  }
}
