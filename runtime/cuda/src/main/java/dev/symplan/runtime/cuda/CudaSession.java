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
import dev.symplan.runtime.profile.Profile;
import dev.symplan.runtime.tensor.HostTensor;
import java.time.Duration;
import java.util.Comparator;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import org.bytedeco.cuda.global.cudart;
import org.jspecify.annotations.Nullable;

/**
 * A plan on GPUs: one thread and one CUDA graph for each.
 *
 * <p>Inputs and outputs have a copy in host memory. That of an input goes to the GPU with the next
 * run once it was handed out, and then stays there: who wants to change it asks for it again. That
 * of an output is fetched when it is asked for.
 */
final class CudaSession implements Session {

  /** How much longer the host waits than kernels do, which can say what they wait for. */
  private static final Duration GRACE = Duration.ofSeconds(10);

  /** So that what a launch of a graph costs the host does not count. */
  private static final int RUNS_IN_GRAPH = 20;

  private final Executable executable;
  private final Duration patience;

  /** By rank. */
  private final ImmutableSortedMap<Integer, LocalRank> locals;

  /** The same, to go through without an iterator. */
  private final ImmutableList<LocalRank> all;

  private final Runnable runOnce = this::runOnce;
  private boolean captured;
  private boolean closed;
  private @Nullable RunException failure;

  private CudaSession(
      Executable executable, ImmutableSortedMap<Integer, LocalRank> locals, Duration patience) {
    this.executable = executable;
    this.locals = locals;
    this.all = locals.values().asList();
    this.patience = patience;
  }

  static CudaSession open(Executable executable, Duration patience) {
    Agreement.firstDifference(Agreement.of(executable))
        .ifPresent(
            difference -> {
              throw new RunException(difference);
            });
    var programs = lower(executable);
    checkDevices(programs.size());
    var locals =
        executable.ranks().stream()
            .map(RankProgram::rank)
            .collect(
                ImmutableSortedMap.toImmutableSortedMap(
                    Comparator.naturalOrder(), rank -> rank, rank -> new LocalRank(rank, rank)));
    var session = new CudaSession(executable, locals, patience);
    try {
      session.prepare(programs);
      return session;
    } catch (RuntimeException | Error e) {
      session.abandon();
      throw e;
    }
  }

  private static ImmutableList<DeviceProgram> lower(Executable executable) {
    try {
      return DeviceLowering.lower(executable);
    } catch (UnsupportedOnGpu e) {
      throw new RunException("backend cuda: " + e.getMessage(), e);
    }
  }

  private void prepare(ImmutableList<DeviceProgram> programs) {
    forAll(
        local ->
            local.open(
                program(local.rank()),
                programs.get(local.rank()),
                executable.symmetricBytes(),
                patience.plus(GRACE)));
    var ids = Communicators.ids(programs);
    forAll(local -> local.gpu().prepare(this::regionOfThisProcess, ids, patience));
  }

  private long regionOfThisProcess(int rank, Peers.Region region) {
    return local(rank).gpu().memory().region(region).address();
  }

  private static void checkDevices(int ranks) {
    var check = new Check(0);
    var count = new int[1];
    check.runtime(cudart.cudaGetDeviceCount(count), "cudaGetDeviceCount");
    if (count[0] < ranks) {
      throw new RunException(
          "the plan is for %d ranks, but there %s"
              .formatted(ranks, count[0] == 1 ? "is one GPU" : "are " + count[0] + " GPUs"));
    }
    for (int a = 0; a < ranks; a++) {
      for (int b = 0; b < ranks; b++) {
        var reaches = new int[] {1};
        if (a != b) {
          check.runtime(cudart.cudaDeviceCanAccessPeer(reaches, a, b), "cudaDeviceCanAccessPeer");
        }
        if (reaches[0] == 0) {
          throw new RunException("GPU %d cannot reach the memory of GPU %d".formatted(a, b));
        }
      }
    }
  }

  /** Does something on every GPU's thread at once, and reports the first failure. */
  private <T> ImmutableList<T> onAll(Function<LocalRank, T> task) {
    var results = new ConcurrentSkipListMap<Integer, T>();
    forAll(local -> results.put(local.rank(), task.apply(local)));
    return ImmutableList.copyOf(results.values());
  }

  private void forAll(Consumer<LocalRank> task) {
    for (var local : all) {
      local.thread().start(() -> task.accept(local));
    }
    joinAll();
  }

  private void joinAll() {
    @Nullable RunException first = null;
    for (int i = 0; i < all.size(); i++) {
      try {
        all.get(i).thread().join();
      } catch (RunException e) {
        first = first == null ? e : first;
      }
    }
    if (first != null) {
      throw first;
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

  private LocalRank local(int rank) {
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
    if (!captured) {
      forAll(local -> local.gpu().capture(1));
      captured = true;
    }
    for (int i = 0; i < all.size(); i++) {
      all.get(i).startRun();
    }
    joinAll();
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
          var graphs = onAll(local -> local.gpu().capture(times));
          for (int i = -1; i < measurements; i++) {
            double slowest =
                onAll(
                        local ->
                            local
                                .gpu()
                                .time(
                                    graphs.get(all.indexOf(local)), launches, patience.plus(GRACE)))
                    .stream()
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
          var timed = onAll(local -> new TimedGraph(local.gpu()));
          var lists = onAll(local -> timed.get(all.indexOf(local)).run(patience.plus(GRACE)));
          forAll(local -> local.copies().ran());
          found.set(new Profile(Alignment.of(executable, lists), timed.getFirst().method()));
        });
    return Objects.requireNonNull(found.get());
  }

  private void guarded(Runnable run) {
    if (failure != null) {
      throw new RunException(
          "the session ended when a run failed: " + failure.getMessage(), failure);
    }
    try {
      run.run();
    } catch (RunException e) {
      failure = e;
      throw e;
    }
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
    if (failure == null) {
      forAll(local -> local.gpu().close());
    }
    abandon();
  }

  /** Leaves to the end of the process what a GPU may still use. */
  private void abandon() {
    closed = true;
    all.forEach(local -> local.thread().close());
  }
}
