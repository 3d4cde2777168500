package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedSet;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.Transfers;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.CallerMemory;
import dev.symplan.runtime.ExecutableSession;
import dev.symplan.runtime.Signature;
import dev.symplan.runtime.Timing;
import dev.symplan.runtime.failure.Failure;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.PlanAgreement;
import dev.symplan.runtime.launch.World;
import dev.symplan.runtime.profile.Profile;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** Memory, threads and the loop of the host backend. */
final class HostSession extends ExecutableSession {

  /** The time that threads get to stop after a run has failed. */
  private static final Duration GRACE = Duration.ofSeconds(2);

  /**
   * The alignment that suits vector instructions of the processor and of libraries; PyTorch gives
   * more.
   */
  private static final long ALIGNMENT = 16;

  /** A copy between the caller's memory and an arena, of one type. */
  private record Copy(HostTensor from, HostTensor to) implements Runnable {
    @Override
    public void run() {
      to.copyFrom(from);
    }
  }

  /** The copies at the beginning and at the end of a run. */
  private record Copies(List<Copy> before, List<Copy> after) {}

  private final Arena memory = Arena.ofShared();
  private final Optional<World> world;
  private final ImmutableSortedSet<Integer> localRanks;

  /** Of the ranks of this process. */
  private final Map<Integer, RankRunner> runners = new TreeMap<>();

  private final Map<Integer, HostMemory> memories = new TreeMap<>();
  private final List<Runnable> tasks = new ArrayList<>();

  /** Of the ranks for which the caller bound memory. */
  private final Map<Integer, Copies> copiesOf = new HashMap<>();

  private final HostSync rendezvous;
  private final ExecutorService threads;
  private final List<Thread> started = new CopyOnWriteArrayList<>();

  /** Threads of a failed run did not stop; their memory must stay. */
  private boolean abandoned;

  /** The last action of a close. */
  private final Runnable onClose;

  /**
   * @param world the processes that have one rank each; empty where this one has all
   * @param onClose the action that comes last, when all else is closed
   * @throws RunException when the ranks do not fit each other, memory or an op's implementation is
   *     missing, or another process fails
   */
  HostSession(Executable executable, Duration timeout, Optional<World> world, Runnable onClose) {
    super(executable);
    this.world = world;
    this.onClose = onClose;
    agree(executable);
    this.localRanks =
        world
            .map(others -> ImmutableSortedSet.of(others.rank()))
            .orElseGet(
                () ->
                    ImmutableSortedSet.copyOf(
                        IntStream.range(0, executable.ranks().size()).iterator()));
    this.rendezvous =
        new HostSync(
            executable.ranks().stream().mapToInt(RankProgram::events).toArray(),
            timeout,
            rank -> runner(rank).activity());
    var programs = localRanks.stream().map(executable.ranks()::get).toList();
    // Every stream of every rank needs its thread: one that waits for a free one waits for ever.
    this.threads =
        Executors.newFixedThreadPool(
            Math.max(1, programs.stream().mapToInt(r -> r.streams().size()).sum()),
            this::newThread);
    try {
      var transfers = new Transfers(executable);
      var peers =
          world
              .<Peers>map(
                  others -> new PeerProcesses(executable, transfers, others, rendezvous, memory))
              .orElseGet(() -> new PeerThreads(executable, transfers, rendezvous, memory));
      var collectives = new Collectives(peers, transfers);
      for (var program : programs) {
        var runner = new RankRunner(program, collectives, rendezvous);
        memories.put(program.rank(), peers.memory(program.rank()));
        runners.put(program.rank(), runner);
        tasks.addAll(runner.tasks());
        RankRunner.checkOps(program);
      }
      world.ifPresent(
          others -> {
            others.onFailure(failure -> rendezvous.abort(new RunException(failure.text())));
            others.barrier("sessions, open");
          });
    } catch (RuntimeException | Error e) {
      tell(String.valueOf(e.getMessage()));
      close();
      throw e;
    }
  }

  @Override
  public Timing time(int runs, int measurements) {
    var timing = super.time(runs, measurements);
    return world.map(timing::slowest).orElse(timing);
  }

  private void agree(Executable executable) {
    try {
      world.ifPresentOrElse(
          others -> PlanAgreement.check(executable, others), () -> PlanAgreement.check(executable));
    } catch (RunException e) {
      tell(String.valueOf(e.getMessage()));
      throw e;
    }
  }

  /** The other processes need not wait for this one. */
  private void tell(String problem) {
    world.ifPresent(
        others ->
            others.fail(
                Failure.RUN_FAILED,
                problem.startsWith("rank ")
                    ? problem
                    : "rank %s: %s".formatted(others.rank(), problem)));
  }

  @Override
  public ImmutableSortedSet<Integer> localRanks() {
    return localRanks;
  }

  private RankRunner runner(int rank) {
    return of(rank, runners);
  }

  private HostMemory memory(int rank) {
    return of(rank, memories);
  }

  private <T> T of(int rank, Map<Integer, T> local) {
    var found = local.get(Objects.checkIndex(rank, ranks()));
    if (found == null) {
      throw new IllegalArgumentException(
          "rank %s does not belong to this process, which runs %s".formatted(rank, localRanks));
    }
    return found;
  }

  private Thread newThread(Runnable work) {
    var thread = Thread.ofPlatform().daemon().name("symplan-rank").unstarted(work);
    started.add(thread);
    return thread;
  }

  @Override
  protected Optional<HostTensor> inputMemory(int rank, int index) {
    return program(rank).inputs().get(index).map(memory(rank)::tensor);
  }

  @Override
  protected void useAsInput(int rank, TensorRef input, HostTensor tensor) {
    moved(rank, input, memory(rank).bindInput(input.index(), tensor.memory()));
  }

  @Override
  protected void useAsOutput(int rank, TensorRef output, HostTensor tensor) {
    moved(rank, output, memory(rank).bindOutput(output.index(), tensor.memory()));
  }

  private void moved(int rank, TensorRef tensor, boolean elsewhere) {
    if (elsewhere) {
      runner(rank).forgetAddress(tensor.arena(), tensor.index());
    }
  }

  @Override
  public long alignment() {
    return ALIGNMENT;
  }

  @Override
  protected Runnable binding(int rank, CallerMemory memory) {
    return () -> use(rank, memory);
  }

  private void use(int rank, CallerMemory memory) {
    var copies = new Copies(new ArrayList<>(), new ArrayList<>());
    var program = program(rank);
    var signature = signature(rank);
    for (int i = 0; i < signature.inputs().size(); i++) {
      var use = signature.inputs().get(i).use();
      if (use instanceof Signature.Use.Direct || use instanceof Signature.Use.Copied) {
        var ref = program.inputs().get(i).orElseThrow();
        var tensor = tensor(memory.inputs(), i, ref.type());
        if (use instanceof Signature.Use.Direct) {
          useAsInput(rank, ref, tensor);
        } else {
          copies.before().add(new Copy(tensor, memory(rank).tensor(ref)));
          if (use instanceof Signature.Use.Copied(_, boolean back) && back) {
            copies.after().add(new Copy(memory(rank).tensor(ref), tensor));
          }
        }
      }
    }
    for (int i = 0; i < signature.outputs().size(); i++) {
      var use = signature.outputs().get(i).use();
      if (use instanceof Signature.Use.Direct || use instanceof Signature.Use.Copied) {
        var ref = program.outputs().get(i).orElseThrow();
        var tensor = tensor(memory.outputs(), i, ref.type());
        if (use instanceof Signature.Use.Direct) {
          useAsOutput(rank, ref, tensor);
        } else {
          copies.after().add(new Copy(memory(rank).tensor(ref), tensor));
        }
      }
    }
    copiesOf.put(rank, copies);
  }

  private static HostTensor tensor(CallerMemory.Stretches memory, int index, TensorType type) {
    return new HostTensor(
        MemorySegment.ofAddress(memory.addresses().get(index)).reinterpret(type.storageBytes()),
        type);
  }

  /** In the caller's thread, where no rank or stream has to wait for another one. */
  @Override
  public void runIn(long stream) {
    requireOpen();
    if (copiesOf.size() < localRanks.size()) {
      throw new IllegalStateException(
          "memory is bound for %s of %s ranks".formatted(copiesOf.size(), localRanks.size()));
    }
    if (tasks.size() > 1 || world.isPresent()) {
      run();
      return;
    }
    if (takeSetup()) {
      runHere(SETUP);
    }
    runHere(ALL);
    copyOut();
  }

  private void runHere(int graph) {
    prepare(graph);
    rendezvous.startRun(tasks.size());
    tasks.forEach(Runnable::run);
    tasks.forEach(_ -> rendezvous.finish());
    @Nullable RunException failure = rendezvous.failure();
    if (failure != null) {
      tell(String.valueOf(failure.getMessage()));
      throw failure;
    }
  }

  /** Resolves addresses, and copies what the plan has in arenas from the caller's memory. */
  private void prepare(int graph) {
    runners
        .values()
        .forEach(
            runner -> {
              runner.prepare();
              runner.runGraph(graph);
            });
    copiesOf.values().forEach(copies -> copies.before().forEach(Copy::run));
  }

  private void copyOut() {
    copiesOf.values().forEach(copies -> copies.after().forEach(Copy::run));
  }

  @Override
  protected void execute(int graph, int times) {
    if (takeSetup()) {
      execute(SETUP);
    }
    for (int i = 0; i < times; i++) {
      execute(graph);
      copyOut();
    }
  }

  private void execute(int graph) {
    prepare(graph);
    rendezvous.startRun(tasks.size());
    for (var task : tasks) {
      threads.execute(
          () -> {
            try {
              task.run();
            } finally {
              rendezvous.finish();
            }
          });
    }
    rendezvous.awaitEnd(this::computing);
    @Nullable RunException failure = rendezvous.failure();
    if (failure != null) {
      tell(String.valueOf(failure.getMessage()));
      threads.shutdownNow().forEach(_ -> rendezvous.finish());
      abandoned = !rendezvous.awaitStop(GRACE);
      throw failure;
    }
  }

  @Override
  public Timing time(String label, int runs, int measurements) {
    requireOpen();
    runners.values().forEach(runner -> runner.runOnly(label));
    try {
      return time(runs, measurements);
    } finally {
      runners.values().forEach(runner -> runner.runOnly(""));
    }
  }

  @Override
  public Profile profile(int before) {
    requireOpen();
    for (int i = 0; i < before; i++) {
      run();
    }
    runners.values().forEach(runner -> runner.takeTimes(true));
    long zero = System.nanoTime();
    try {
      run();
      return new Profile(
          runners.values().stream()
              .flatMap(runner -> runner.activities(zero).stream())
              .collect(ImmutableList.toImmutableList()),
          "one run, by the clock of the host");
    } finally {
      runners.values().forEach(runner -> runner.takeTimes(false));
    }
  }

  private String computing() {
    return runners.values().stream()
        .flatMap(runner -> runner.computing().stream())
        .collect(Collectors.joining(" and "));
  }

  @Override
  public Optional<HostTensor> output(int rank, int index) {
    requireOpen();
    return program(rank).outputs().get(index).map(memory(rank)::tensor);
  }

  @Override
  protected void release() {
    threads.shutdownNow();
    boolean interrupted = false;
    for (int i = 0; i < started.size() && !abandoned; ) {
      try {
        abandoned = !started.get(i).join(GRACE);
        i++;
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    if (!abandoned) {
      memory.close();
    }
    onClose.run();
  }
}
