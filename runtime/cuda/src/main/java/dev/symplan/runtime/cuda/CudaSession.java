package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
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
import dev.symplan.runtime.tensor.HostTensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentSkipListMap;
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
  private final List<GpuThread> threads = new ArrayList<>();
  private final List<Gpu> gpus = new ArrayList<>();
  private final List<HostCopies> copies = new ArrayList<>();

  /** By rank, what a run does once all is captured: made once, as runs shall make nothing. */
  private final List<Runnable> runs = new ArrayList<>();

  private final Runnable runOnce = this::runOnce;
  private boolean captured;
  private boolean closed;
  private @Nullable RunException failure;

  private CudaSession(Executable executable, Duration patience) {
    this.executable = executable;
    this.patience = patience;
  }

  static CudaSession open(Executable executable, Duration patience) {
    Agreement.firstDifference(Agreement.of(executable))
        .ifPresent(
            difference -> {
              throw new RunException(difference);
            });
    var session = new CudaSession(executable, patience);
    try {
      session.prepare(lower(executable));
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
    checkDevices(programs.size());
    for (int rank = 0; rank < programs.size(); rank++) {
      threads.add(new GpuThread("symplan-gpu-" + rank));
    }
    gpus.addAll(
        onAll(
            rank ->
                new Gpu(
                    executable.ranks().get(rank),
                    programs.get(rank),
                    executable.symmetricBytes())));
    var memory = gpus.stream().map(Gpu::memory).toList();
    var ids = Communicators.ids(programs);
    forAll(rank -> gpus.get(rank).prepare(memory, ids, patience));
    var limit = patience.plus(GRACE);
    for (var gpu : gpus) {
      var copied = new HostCopies(gpu);
      copies.add(copied);
      runs.add(
          () -> {
            gpu.launch(0);
            gpu.await(limit);
            copied.ran();
          });
    }
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
  private <T> List<T> onAll(Function<Integer, T> task) {
    var results = new ConcurrentSkipListMap<Integer, T>();
    forAll(rank -> results.put(rank, task.apply(rank)));
    return ImmutableList.copyOf(results.values());
  }

  private void forAll(Consumer<Integer> task) {
    for (int rank = 0; rank < threads.size(); rank++) {
      int self = rank;
      threads.get(rank).start(() -> task.accept(self));
    }
    joinAll();
  }

  private void joinAll() {
    @Nullable RunException first = null;
    for (int rank = 0; rank < threads.size(); rank++) {
      try {
        threads.get(rank).join();
      } catch (RunException e) {
        first = first == null ? e : first;
      }
    }
    if (first != null) {
      throw first;
    }
  }

  private void on(int rank, Runnable task) {
    threads.get(rank).start(task);
    threads.get(rank).join();
  }

  @Override
  public int ranks() {
    return gpus.size();
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

  @Override
  public Optional<HostTensor> input(int rank, int index) {
    requireOpen();
    var ref = program(rank).inputs().get(index);
    ref.ifPresent(r -> on(rank, () -> copies.get(rank).handOut(r)));
    return ref.map(r -> copies.get(rank).tensor(r));
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
    copies.get(rank).bindInput(ref.get(), checked(ref.get(), tensor, name));
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
    copies.get(rank).bindOutput(ref.get(), checked(ref.get(), tensor, name));
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
    for (int rank = 0; rank < copies.size(); rank++) {
      hasUploads |= copies.get(rank).hasUploads();
    }
    if (hasUploads) {
      forAll(rank -> copies.get(rank).upload());
    }
    if (!captured) {
      forAll(rank -> gpus.get(rank).capture(1));
      captured = true;
    }
    for (int rank = 0; rank < threads.size(); rank++) {
      threads.get(rank).start(runs.get(rank));
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
          var graphs = onAll(rank -> gpus.get(rank).capture(times));
          for (int i = -1; i < measurements; i++) {
            double slowest =
                onAll(rank -> gpus.get(rank).time(graphs.get(rank), launches, patience.plus(GRACE)))
                    .stream()
                    .mapToDouble(micros -> micros)
                    .max()
                    .orElseThrow();
            measured[Math.max(0, i)] = slowest / times / launches;
          }
        });
    return Timing.of(measured);
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
    var ref = program(rank).outputs().get(index);
    ref.ifPresent(r -> on(rank, () -> copies.get(rank).fetch(r)));
    return ref.map(r -> copies.get(rank).tensor(r));
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
      forAll(rank -> gpus.get(rank).close());
    }
    abandon();
  }

  /** Leaves to the end of the process what a GPU may still use. */
  private void abandon() {
    closed = true;
    threads.forEach(GpuThread::close);
  }
}
