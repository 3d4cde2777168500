package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.collect.ImmutableSortedSet;
import dev.symplan.codegen.Agreement;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.UnsupportedOnGpu;
import dev.symplan.runtime.RunException;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.Timing;
import dev.symplan.runtime.launch.PlanAgreement;
import dev.symplan.runtime.launch.World;
import dev.symplan.runtime.profile.Profile;
import dev.symplan.runtime.tensor.HostTensor;
import java.time.Duration;
import java.util.Comparator;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * A plan on GPUs: one thread and one CUDA graph for each.
 *
 * <p>Inputs and outputs have a copy in host memory. That of an input goes to the GPU with the next
 * run once it was handed out, and then stays there: who wants to change it asks for it again. That
 * of an output is fetched when it is asked for.
 */
final class CudaSession implements Session {

  /** How long GPUs have to stop when the session has failed. */
  private static final Duration STOPPING = Duration.ofSeconds(2);

  /** How long a failed session may take to free what it has. */
  private static final Duration FREEING = Duration.ofSeconds(15);

  private static final long LOOK_NANOS = 1_000_000;

  /** So that what a launch of a graph costs the host does not count. */
  private static final int RUNS_IN_GRAPH = 20;

  private final Executable executable;
  private final Duration timeout;
  private final Optional<World> world;
  private final Ending ending;

  /** By rank. */
  private final ImmutableSortedMap<Integer, LocalRank> locals;

  /** The same, to go through without an iterator. */
  private final ImmutableList<LocalRank> all;

  private final Runnable runOnce = this::runOnce;
  private Runnable onClose = () -> {};
  private boolean captured;
  private boolean closed;

  private CudaSession(
      Executable executable,
      Optional<World> world,
      Ending ending,
      ImmutableSortedMap<Integer, LocalRank> locals,
      Duration timeout) {
    this.executable = executable;
    this.world = world;
    this.ending = ending;
    this.locals = locals;
    this.all = locals.values().asList();
    this.timeout = timeout;
  }

  /** Opens a session that has all ranks in this process. */
  static CudaSession open(Executable executable, Duration timeout) {
    return open(executable, timeout, Optional.empty());
  }

  /**
   * Opens a session.
   *
   * @param timeout how long a run may take
   * @param world the processes that have one rank each, which the session does not close; empty
   *     where this has all
   * @throws RunException when it cannot be had; the message says why
   */
  static CudaSession open(Executable executable, Duration timeout, Optional<World> world) {
    if (world.isPresent()) {
      PlanAgreement.check(executable, world.get());
    } else {
      Agreement.firstDifference(Agreement.of(executable))
          .ifPresent(
              difference -> {
                throw new RunException(difference);
              });
    }
    var programs = lower(executable);
    var ending = new Ending(world);
    var devices =
        world.isPresent() ? Processes.device(world.get()) : Devices.ofAllRanks(programs.size());
    var locals =
        devices.entrySet().stream()
            .collect(
                ImmutableSortedMap.toImmutableSortedMap(
                    Comparator.naturalOrder(),
                    Map.Entry::getKey,
                    e -> new LocalRank(e.getKey(), e.getValue(), ending)));
    var session = new CudaSession(executable, world, ending, locals, timeout);
    try {
      session.prepare(programs);
      return session;
    } catch (RuntimeException | Error e) {
      if (e instanceof RunException failed) {
        ending.fail(failed);
      }
      session.close();
      throw e;
    }
  }

  /** Does something when all else is closed. */
  void onClose(Runnable task) {
    onClose = task;
  }

  private static ImmutableList<DeviceProgram> lower(Executable executable) {
    try {
      return DeviceLowering.lower(executable);
    } catch (UnsupportedOnGpu e) {
      throw new RunException("backend cuda: " + e.getMessage(), e);
    }
  }

  private void prepare(ImmutableList<DeviceProgram> programs) {
    if (world.isPresent()) {
      Processes.prepare(all.getFirst(), executable, programs, world.get(), timeout);
      return;
    }
    forAll(
        local ->
            local.open(
                program(local.rank()),
                programs.get(local.rank()),
                executable.symmetricBytes(),
                Sharing.WithinProcess.WITHIN_PROCESS,
                timeout));
    var ids = Communicators.ids(programs);
    forAll(local -> local.gpu().prepare(this::regionOfThisProcess, ids));
  }

  private long regionOfThisProcess(int rank, Peers.Region region) {
    return local(rank).gpu().memory().region(region).address();
  }

  /** Does something on every GPU's thread at once, and reports the first failure. */
  private <T> ImmutableList<T> onAll(Function<LocalRank, T> task) {
    var results = new ConcurrentSkipListMap<Integer, T>();
    forAll(local -> results.put(local.rank(), task.apply(local)));
    return ImmutableList.copyOf(results.values());
  }

  private void forAll(Consumer<LocalRank> task) {
    for (var local : all) {
      local.start(() -> task.accept(local));
    }
    joinAll();
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

  private static void on(LocalRank local, Runnable task) {
    local.thread().start(task);
    local.thread().join();
  }

  @Override
  public int ranks() {
    return executable.ranks().size();
  }

  @Override
  public ImmutableSortedSet<Integer> localRanks() {
    return locals.keySet();
  }

  @Override
  public ImmutableList<String> inputNames() {
    return executable.ranks().getFirst().inputNames();
  }

  @Override
  public int outputCount() {
    return executable.ranks().getFirst().outputs().size();
  }

  private RankProgram program(int rank) {
    return executable.ranks().get(rank);
  }

  LocalRank local(int rank) {
    var local = locals.get(Objects.checkIndex(rank, ranks()));
    if (local == null) {
      throw new IllegalArgumentException(
          "rank %d is not of this process, which has %s".formatted(rank, localRanks()));
    }
    return local;
  }

  @Override
  public Optional<HostTensor> input(int rank, int index) {
    requireOpen();
    var local = local(rank);
    var ref = program(rank).inputs().get(index);
    ref.ifPresent(r -> on(local, () -> local.copies().handOut(r)));
    return ref.map(local.copies()::tensor);
  }

  @Override
  public boolean isExternalInput(int rank, int index) {
    return program(rank).inputs().get(index).filter(ref -> ref.arena().isExternal()).isPresent();
  }

  @Override
  public void bindInput(int rank, int index, HostTensor tensor) {
    requireOpen();
    var name = "input '%s' of rank %d".formatted(inputNames().get(index), rank);
    var ref = program(rank).inputs().get(index);
    if (ref.isEmpty() || ref.get().arena() != dev.symplan.planner.Arena.EXTERNAL_INPUT) {
      throw new IllegalArgumentException(name + " is planned: it has its place in an arena");
    }
    local(rank).copies().bindInput(ref.get(), checked(ref.get(), tensor, name));
  }

  @Override
  public void bindOutput(int rank, int index, HostTensor tensor) {
    requireOpen();
    var name = "output %d of rank %d".formatted(index, rank);
    var ref = program(rank).outputs().get(index);
    if (ref.isEmpty() || ref.get().arena() != dev.symplan.planner.Arena.EXTERNAL_OUTPUT) {
      throw new IllegalArgumentException(name + " has no memory of its own");
    }
    if (tensor.memory().isReadOnly()) {
      throw new IllegalArgumentException(name + ": the memory is read-only");
    }
    local(rank).copies().bindOutput(ref.get(), checked(ref.get(), tensor, name));
  }

  private static HostTensor checked(TensorRef ref, HostTensor tensor, String name) {
    var expected = ref.type();
    if (tensor.dtype() != expected.dtype()
        || !tensor.type().sizes().equals(expected.sizes())
        || !tensor.type().strides().equals(expected.strides())) {
      throw new IllegalArgumentException(
          "%s is %s, not %s".formatted(name, expected, tensor.type()));
    }
    if (!tensor.memory().isNative()) {
      throw new IllegalArgumentException(name + ": the memory is on the Java heap; use an Arena");
    }
    if (!tensor.memory().isAccessibleBy(new Thread())) {
      throw new IllegalArgumentException(
          name + ": the memory is confined to a thread; use a shared or automatic Arena");
    }
    return tensor;
  }

  @Override
  public void run() {
    requireOpen();
    guarded(runOnce);
  }

  private void runOnce() {
    // A GPU that still gets its inputs, or whose graph is not built, would let its peers' kernels
    // spin, and the driver may have to wait for those.
    boolean hasUploads = false;
    for (int i = 0; i < all.size(); i++) {
      hasUploads |= all.get(i).copies().hasUploads();
    }
    if (hasUploads) {
      forAll(local -> local.copies().upload());
    }
    captureRun();
    for (int i = 0; i < all.size(); i++) {
      all.get(i).startRun();
    }
    joinAll();
  }

  /** The graph of a run is each GPU's first. */
  private void captureRun() {
    if (!captured) {
      forAll(local -> local.gpu().capture(1));
      world.ifPresent(others -> others.barrier("what a run does, captured"));
      captured = true;
    }
  }

  /** On the slowest GPU's clock, by graphs that have many runs in them. */
  @Override
  public Timing time(int runs, int measurements) {
    requireOpen();
    int times = Math.min(runs, RUNS_IN_GRAPH);
    int launches = Math.ceilDiv(runs, times);
    var measured = new double[measurements];
    guarded(
        () -> {
          captureRun();
          var graphs = onAll(local -> local.gpu().capture(times));
          world.ifPresent(others -> others.barrier("runs to be timed, captured"));
          for (int i = -1; i < measurements; i++) {
            double slowest =
                onAll(local -> local.gpu().time(graphs.get(all.indexOf(local)), launches)).stream()
                    .mapToDouble(micros -> micros)
                    .max()
                    .orElseThrow();
            measured[Math.max(0, i)] = slowest / times / launches;
          }
        });
    return Timing.of(measured);
  }

  @Override
  public Profile profile() {
    requireOpen();
    var found = new AtomicReference<Profile>();
    guarded(
        () -> {
          forAll(local -> local.copies().upload());
          captureRun();
          var timed = onAll(local -> new TimedGraph(local.gpu()));
          world.ifPresent(others -> others.barrier("a run to be profiled, captured"));
          var lists = onAll(local -> timed.get(all.indexOf(local)).run());
          forAll(local -> local.copies().ran());
          found.set(new Profile(Alignment.of(executable, lists), timed.getFirst().method()));
        });
    return Objects.requireNonNull(found.get());
  }

  private void guarded(Runnable run) {
    ending
        .cause()
        .ifPresent(
            failure -> {
              throw new RunException(
                  "the session ended when a run failed: " + failure.getMessage(), failure);
            });
    try {
      run.run();
    } catch (RunException e) {
      ending.fail(e);
      throw new RunException(e.getMessage() + busy(), e);
    }
  }

  /** Who keeps the others waiting, as far as this process knows. */
  private String busy() {
    var ranks =
        all.stream()
            .filter(local -> !local.thread().isIdle() || !local.gpu().isIdle(Duration.ZERO))
            .map(local -> "rank " + local.rank())
            .toList();
    return ranks.isEmpty()
        ? ""
        : "; %s %s still busy"
            .formatted(String.join(" and ", ranks), ranks.size() == 1 ? "is" : "are");
  }

  @Override
  public Optional<HostTensor> output(int rank, int index) {
    requireOpen();
    var local = local(rank);
    var ref = program(rank).outputs().get(index);
    ref.ifPresent(r -> on(local, () -> local.copies().fetch(r)));
    return ref.map(local.copies()::tensor);
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("the session is closed");
    }
  }

  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    try {
      if (ending.hasBegun()) {
        release();
      } else {
        forAll(local -> local.gpu().close());
      }
    } finally {
      all.forEach(local -> local.thread().close());
      onClose.run();
    }
  }

  /**
   * Frees what a failed session has. Only when all GPUs of the process have stopped: until then
   * they may touch each other's memory, which else stays until the process ends.
   */
  private void release() {
    boolean stopped =
        attempt(local -> local.openGpu().ifPresent(Gpu::stop), STOPPING)
            && attempt(
                local ->
                    local
                        .openGpu()
                        .filter(gpu -> !gpu.isIdle(STOPPING))
                        .ifPresent(
                            gpu -> {
                              throw new RunException("rank " + local.rank() + " does not stop");
                            }),
                STOPPING.multipliedBy(2));
    if (stopped) {
      var _ = attempt(local -> local.openGpu().ifPresent(Gpu::close), FREEING);
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
