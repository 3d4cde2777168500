package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.collect.ImmutableSortedSet;
import com.google.common.util.concurrent.ThreadFactoryBuilder;
import dev.symplan.codegen.Agreement;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.UnsupportedOnGpu;
import dev.symplan.runtime.RunException;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
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

  /** As many as it takes for the median to be steady; one more warms up. */
  private static final int MEASUREMENTS = 7;

  private final Executable executable;
  private final Duration patience;

  /** The ranks of this process, and which GPU each has. */
  private final ImmutableSortedMap<Integer, Integer> devices;

  private final Map<Integer, ExecutorService> threads = new TreeMap<>();
  private final Map<Integer, Gpu> gpus = new TreeMap<>();
  private final Map<Integer, HostCopies> copies = new TreeMap<>();
  private boolean captured;
  private boolean closed;
  private @Nullable RunException failure;

  private CudaSession(
      Executable executable, ImmutableSortedMap<Integer, Integer> devices, Duration patience) {
    this.executable = executable;
    this.devices = devices;
    this.patience = patience;
  }

  static CudaSession open(Executable executable, Duration patience) {
    Agreement.firstDifference(Agreement.of(executable))
        .ifPresent(
            difference -> {
              throw new RunException(difference);
            });
    var devices =
        executable.ranks().stream()
            .map(RankProgram::rank)
            .collect(
                ImmutableSortedMap.toImmutableSortedMap(
                    Comparator.naturalOrder(), rank -> rank, rank -> rank));
    var session = new CudaSession(executable, devices, patience);
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
    for (int rank : devices.keySet()) {
      threads.put(
          rank,
          Executors.newSingleThreadExecutor(
              new ThreadFactoryBuilder()
                  .setDaemon(true)
                  .setNameFormat("symplan-gpu-" + rank)
                  .build()));
    }
    gpus.putAll(
        onAll(
            rank ->
                new Gpu(
                    program(rank),
                    programs.get(rank),
                    Objects.requireNonNull(devices.get(rank)),
                    executable.symmetricBytes())));
    var ids = Communicators.ids(programs);
    forAll(rank -> gpu(rank).prepare(this::regionOfThisProcess, ids, patience));
    gpus.forEach((rank, gpu) -> copies.put(rank, new HostCopies(gpu)));
  }

  private long regionOfThisProcess(int rank, Peers.Region region) {
    return gpu(rank).memory().region(region).address();
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
  private <T> Map<Integer, T> onAll(Function<Integer, T> task) {
    var futures = new TreeMap<Integer, Future<T>>();
    threads.forEach((rank, thread) -> futures.put(rank, thread.submit(() -> task.apply(rank))));
    var results = new TreeMap<Integer, T>();
    @Nullable RunException first = null;
    for (var future : futures.entrySet()) {
      try {
        results.put(future.getKey(), future.getValue().get());
      } catch (ExecutionException e) {
        first = first == null ? failed(e) : first;
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new RunException("the run was interrupted", e);
      }
    }
    if (first != null) {
      throw first;
    }
    return results;
  }

  private void forAll(Consumer<Integer> task) {
    var _ =
        onAll(
            rank -> {
              task.accept(rank);
              return rank;
            });
  }

  private void on(int rank, Runnable task) {
    try {
      Objects.requireNonNull(threads.get(rank)).submit(task).get();
    } catch (ExecutionException e) {
      throw failed(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new RunException("the run was interrupted", e);
    }
  }

  private static RunException failed(ExecutionException e) {
    return e.getCause() instanceof RunException run
        ? run
        : new RunException("a GPU's thread failed: " + e.getMessage(), e);
  }

  @Override
  public int ranks() {
    return executable.ranks().size();
  }

  @Override
  public ImmutableSortedSet<Integer> localRanks() {
    return devices.keySet();
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

  private Gpu gpu(int rank) {
    return Objects.requireNonNull(gpus.get(rank));
  }

  private HostCopies copies(int rank) {
    var own = copies.get(rank);
    if (own == null) {
      throw new IllegalArgumentException(
          "rank %d is not of this process, which has %s".formatted(rank, localRanks()));
    }
    return own;
  }

  @Override
  public Optional<HostTensor> input(int rank, int index) {
    requireOpen();
    var own = copies(rank);
    var ref = program(rank).inputs().get(index);
    ref.ifPresent(r -> on(rank, () -> own.handOut(r)));
    return ref.map(own::tensor);
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
    copies(rank).bindInput(ref.get(), checked(ref.get(), tensor, name));
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
    copies(rank).bindOutput(ref.get(), checked(ref.get(), tensor, name));
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
    guarded(
        () -> {
          // A GPU that still gets its inputs, or whose graph is not built, would let its peers'
          // kernels spin, and the driver may have to wait for those.
          if (copies.values().stream().anyMatch(HostCopies::hasUploads)) {
            forAll(rank -> copies(rank).upload());
          }
          if (!captured) {
            forAll(rank -> gpu(rank).capture(1));
            captured = true;
          }
          forAll(
              rank -> {
                gpu(rank).launch(0);
                gpu(rank).await(patience.plus(GRACE));
                copies(rank).ran();
              });
        });
  }

  /**
   * {@return how long a run takes in the steady state, in microseconds on the slowest GPU's clock:
   * the median of several measurements}
   *
   * @param times how often the program is in one graph
   * @param launches of the graph in one measurement
   */
  double time(int times, int launches) {
    requireOpen();
    var measured = new double[MEASUREMENTS];
    guarded(
        () -> {
          var graphs = onAll(rank -> gpu(rank).capture(times));
          for (int i = -1; i < MEASUREMENTS; i++) {
            double slowest =
                onAll(
                        rank ->
                            gpu(rank)
                                .time(
                                    Objects.requireNonNull(graphs.get(rank)),
                                    launches,
                                    patience.plus(GRACE)))
                    .values()
                    .stream()
                    .mapToDouble(micros -> micros)
                    .max()
                    .orElseThrow();
            measured[Math.max(0, i)] = slowest;
          }
        });
    Arrays.sort(measured);
    return measured[MEASUREMENTS / 2] / times / launches;
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
    var own = copies(rank);
    var ref = program(rank).outputs().get(index);
    ref.ifPresent(r -> on(rank, () -> own.fetch(r)));
    return ref.map(own::tensor);
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
      forAll(rank -> gpu(rank).close());
    }
    abandon();
  }

  /** Leaves to the end of the process what a GPU may still use. */
  private void abandon() {
    closed = true;
    threads.values().forEach(ExecutorService::shutdown);
  }
}
