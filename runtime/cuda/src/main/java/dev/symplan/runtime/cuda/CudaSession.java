package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DependentLaunches;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.ReadAhead;
import dev.symplan.codegen.cuda.UnsupportedOnGpu;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.runtime.CallerMemory;
import dev.symplan.runtime.ExecutableSession;
import dev.symplan.runtime.ProductAlgorithms;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.Timing;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.PlanAgreement;
import dev.symplan.runtime.launch.World;
import dev.symplan.runtime.profile.Profile;
import dev.symplan.runtime.tensor.HostTensor;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.ToIntBiFunction;
import org.bytedeco.cuda.cudart.CUstream_st;

/**
 * A plan on GPUs: one thread and one CUDA graph for each.
 *
 * <p>Inputs and outputs have a copy in host memory. That of an input goes to the GPU with the first
 * run after it was handed out, and then stays there; to change it, ask for it again. That of an
 * output is fetched when it is asked for.
 */
final class CudaSession extends ExecutableSession {

  /** So that what a launch of a graph costs the host does not count. */
  private static final int RUNS_IN_GRAPH = 20;

  /** The alignment that algorithms of libraries may assume, in bytes. */
  private static final long ALIGNMENT = 256;

  private final Duration timeout;
  private final ProductAlgorithms products;
  private final boolean callerMemory;
  private final Optional<World> world;
  private final SessionFailure ending;

  private final LocalRanks locals;
  private final MulticastTeams teams;
  private final Runnable launchRuns = this::launchRuns;

  /** For each graph of the program, the number of what was captured of it; empty before. */
  private ImmutableIntArray parts = ImmutableIntArray.of();

  /** The graph of the program that runs next, or all graphs, and how often. */
  private int graph = ALL;

  private int times = 1;

  private Runnable onClose = () -> {};
  private boolean captured;
  private boolean released;

  private CudaSession(
      Executable executable,
      SessionOptions options,
      SessionFailure ending,
      LocalRanks locals,
      MulticastTeams teams) {
    super(executable);
    this.teams = teams;
    this.world = options.world();
    this.ending = ending;
    this.locals = locals;
    this.timeout = options.timeout().orElseThrow();
    this.products = options.products();
    this.callerMemory = options.callerMemory();
  }

  /** Opens a session that has all ranks in this process, and uses no multicast. */
  static CudaSession open(Executable executable, Duration timeout) {
    return open(executable, SessionOptions.DEFAULT.withTimeout(timeout));
  }

  /**
   * Opens a session.
   *
   * @param options with a timeout; where no world is given, this process has all ranks
   * @throws RunException when it cannot be had; the message says why
   */
  static CudaSession open(Executable executable, SessionOptions options) {
    var world = options.world();
    var ending = new SessionFailure(world);
    try {
      world.ifPresentOrElse(
          others ->
              PlanAgreement.check(
                  executable,
                  others,
                  () -> Processes.domains(others, Processes.own(others, options.device()))),
          () -> PlanAgreement.check(executable));
      // Before anything is made; the kernels are asked again below.
      MulticastTeams.planned(executable).requireAllowed(options.multicast());
      var devices =
          world
              .map(others -> Processes.device(others, Processes.own(others, options.device())))
              .orElseGet(() -> Devices.of(executable.ranks().size(), options.device()));
      var locals = new LocalRanks(devices, ending);
      try {
        var programs = locals.whileContextsAreMade(() -> lower(executable, options));
        AddressCheck.check(executable, programs);
        var teams = MulticastTeams.of(programs);
        teams.requireAllowed(options.multicast());
        var session = new CudaSession(executable, options, ending, locals, teams);
        session.prepare(programs);
        return session;
      } catch (RuntimeException e) {
        ending.fail(
            e instanceof RunException known ? known : new RunException(String.valueOf(e), e));
        locals.close(true);
        throw e;
      }
    } catch (RunException e) {
      // The other processes need not wait for this one; what failed first, maybe there, is why.
      ending.fail(e);
      throw ending.cause().orElse(e);
    }
  }

  /** Does something when all else is closed. */
  void onClose(Runnable task) {
    onClose = task;
  }

  /**
   * {@return the program of each rank's GPU}
   *
   * @throws RunException when an op has no implementation for GPUs
   */
  static ImmutableList<DeviceProgram> lower(Executable executable, SessionOptions options) {
    try {
      var programs = DeviceLowering.lower(executable);
      return options.dependentLaunches()
          ? ReadAhead.in(programs, executable).stream()
              .map(DependentLaunches::in)
              .collect(ImmutableList.toImmutableList())
          : programs;
    } catch (UnsupportedOnGpu e) {
      throw new RunException("backend cuda: " + e.getMessage(), e);
    }
  }

  private void prepare(ImmutableList<DeviceProgram> programs) {
    var timer = new ProductTimer(products, programs, timeout);
    world.ifPresentOrElse(
        others ->
            Processes.prepare(
                locals.get(others.rank()), executable(), programs, teams, timer, others, timeout),
        () -> OneProcess.prepare(locals, executable(), programs, teams, timer, timeout));
    if (callerMemory) {
      // Nobody waits for runs in the caller's streams: their kernels would go on waiting.
      world.ifPresent(
          others -> others.onFailure(_ -> Thread.ofPlatform().daemon().start(this::stop)));
    } else {
      locals.forAll(local -> local.gpu().memory().external().allocateAll());
    }
  }

  private synchronized void stop() {
    if (!released) {
      locals.ranks().forEach(rank -> local(rank).here(local(rank).gpu()::stop));
    }
  }

  private static void on(LocalRank local, Runnable task) {
    local.thread().start(task);
    local.thread().join();
  }

  @Override
  public ImmutableSortedSet<Integer> localRanks() {
    return locals.ranks();
  }

  LocalRank local(int rank) {
    return locals.get(Objects.checkIndex(rank, ranks()));
  }

  @Override
  protected Optional<HostTensor> inputMemory(int rank, int index) {
    var local = local(rank);
    var ref = program(rank).inputs().get(index);
    ref.ifPresent(r -> on(local, () -> local.copies().handOut(r)));
    return ref.map(local.copies()::tensor);
  }

  @Override
  public long alignment() {
    return ALIGNMENT;
  }

  @Override
  protected Runnable binding(int rank, CallerMemory memory) {
    if (localRanks().size() > 1) {
      throw new RunException(
          "backend cuda: the caller's memory can be bound only where the process has one rank; this one has %s"
              .formatted(localRanks().size()));
    }
    var runs = local(rank).callerRuns();
    var binding = runs.binding(program(rank), signature(rank), memory);
    return () -> runs.use(binding);
  }

  @Override
  public void runIn(long stream) {
    requireOpen();
    if (!isBound()) {
      throw new IllegalStateException("memory is bound for 0 of %s ranks".formatted(ranks()));
    }
    var callers = new CUstream_st(new DevicePointer(stream));
    guarded(() -> only().here(() -> put(callers)));
  }

  /** The rank of a process that has one. */
  private LocalRank only() {
    return locals.get(localRanks().first());
  }

  private void put(CUstream_st stream) {
    only().gpu().requireNoFailure();
    only().callerRuns().run(stream, takeSetup());
  }

  @Override
  protected void useAsInput(int rank, TensorRef input, HostTensor tensor) {
    local(rank).copies().bindInput(input, tensor);
  }

  @Override
  protected void useAsOutput(int rank, TensorRef output, HostTensor tensor) {
    local(rank).copies().bindOutput(output, tensor);
  }

  @Override
  protected void execute(int wanted, int repeated) {
    if (isBound()) {
      var gpu = only().gpu();
      guarded(
          () ->
              only()
                  .here(
                      () -> {
                        for (int i = 0; i < repeated; i++) {
                          put(gpu.stream(StreamKind.COMPUTE));
                        }
                        gpu.await(repeated);
                      }));
    } else {
      requireMemory();
      graph = wanted;
      times = repeated;
      guarded(launchRuns);
    }
  }

  private void requireMemory() {
    if (callerMemory && !isBound()) {
      throw new IllegalStateException("memory is bound for 0 of %s ranks".formatted(ranks()));
    }
  }

  /** Graphs for measurements have the addresses of the session's own memory. */
  private void requireOwnMemory() {
    requireOpen();
    if (callerMemory || isBound()) {
      throw new UnsupportedOperationException("runs on the caller's memory cannot be measured");
    }
  }

  private void launchRuns() {
    // A GPU that still gets its inputs, or whose graph is not built, would let its peers' kernels
    // spin, and the driver may have to wait for those.
    locals.begin(takeSetup());
    captureRun();
    if (graph != ALL) {
      captureParts();
    }
    locals.run(graph == ALL ? Gpu.RUN : parts.get(graph), times);
  }

  /** Like a run, the graphs of the program are captured on all GPUs before one is launched. */
  private void captureParts() {
    if (!parts.isEmpty()) {
      return;
    }
    var numbers = ImmutableIntArray.builder();
    for (int i = 0; i < graphs().size(); i++) {
      int part = i;
      var captured = locals.onAll(local -> local.gpu().captureOne(part)).values().asList();
      if (captured.stream().distinct().count() > 1) {
        throw new IllegalStateException("GPUs captured other graphs before: " + captured);
      }
      numbers.add(captured.getFirst());
    }
    world.ifPresent(others -> others.barrier("the graphs of the program, captured"));
    parts = numbers.build();
  }

  /** The graph of a run is each GPU's first: {@link Gpu#RUN}. */
  private void captureRun() {
    if (!captured) {
      locals.forAll(local -> local.gpu().capture(1));
      world.ifPresent(others -> others.barrier("what a run does, captured"));
      captured = true;
    }
  }

  /** On the slowest GPU's clock, by graphs that have many runs in them. */
  @Override
  public Timing time(int runs, int measurements) {
    return time((gpu, times) -> gpu.capture(times), runs, measurements);
  }

  @Override
  public Timing time(String label, int runs, int measurements) {
    return time((gpu, times) -> gpu.captureOnly(label, times), runs, measurements);
  }

  private Timing time(ToIntBiFunction<Gpu, Integer> capture, int runs, int measurements) {
    requireOwnMemory();
    restart();
    int times = Math.min(runs, RUNS_IN_GRAPH);
    int launches = Math.ceilDiv(runs, times);
    var measured = new double[measurements];
    guarded(
        () -> {
          locals.begin(takeSetup());
          captureRun();
          var graphs = locals.onAll(local -> capture.applyAsInt(local.gpu(), times));
          world.ifPresent(others -> others.barrier("runs to be timed, captured"));
          for (int i = -1; i < measurements; i++) {
            double slowest =
                locals
                    .onAll(
                        local ->
                            local
                                .gpu()
                                .time(Objects.requireNonNull(graphs.get(local.rank())), launches))
                    .values()
                    .stream()
                    .mapToDouble(micros -> micros)
                    .max()
                    .orElseThrow();
            measured[Math.max(0, i)] = slowest / times / launches;
          }
          locals.forAll(local -> local.copies().ran());
        });
    var timing = Timing.of(measured);
    return world.map(timing::slowest).orElse(timing);
  }

  @Override
  public Profile profile(int before) {
    requireOwnMemory();
    restart();
    var found = new AtomicReference<Profile>();
    guarded(
        () -> {
          locals.begin(takeSetup());
          captureRun();
          var timed = locals.onAll(local -> new TimedGraph(local.gpu()));
          world.ifPresent(others -> others.barrier("a run to be profiled, captured"));
          var lists =
              locals
                  .onAll(local -> Objects.requireNonNull(timed.get(local.rank())).run(before))
                  .values()
                  .asList();
          locals.forAll(local -> local.copies().ran());
          found.set(
              new Profile(
                  Alignment.of(executable(), lists), timed.values().iterator().next().method()));
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
      var busy = locals.busy();
      if (!busy.isEmpty()) {
        ProcessExit.skipLibraries();
      }
      throw new RunException(e.getMessage() + busy, e);
    }
  }

  @Override
  public Optional<HostTensor> output(int rank, int index) {
    requireOpen();
    var ref = program(rank).outputs().get(index);
    var local = local(rank);
    ref.ifPresent(r -> on(local, () -> local.copies().fetch(r)));
    return ref.map(local.copies()::tensor);
  }

  @Override
  protected synchronized void release() {
    released = true;
    try {
      locals.close(othersAreDone());
    } finally {
      onClose.run();
    }
  }

  /**
   * Kernels of other processes may use this one's memory through multicast until they end. Where a
   * rank has failed, nobody knows when that is.
   */
  private boolean othersAreDone() {
    if (world.isEmpty() || teams.isEmpty()) {
      return true;
    }
    if (ending.hasBegun()) {
      return false;
    }
    try {
      world.get().barrier("runs with multicast, all ended");
      return true;
    } catch (RunException e) {
      return false;
    }
  }
}
