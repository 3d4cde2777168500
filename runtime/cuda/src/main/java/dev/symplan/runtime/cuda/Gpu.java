package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.math.LongMath;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.DeviceStep;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.runtime.failure.RunException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiConsumer;
import org.bytedeco.cuda.cudart.CUevent_st;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.cuda.nccl.ncclUniqueId;
import org.bytedeco.javacpp.Pointer;

/**
 * One rank's GPU: streams, events, memory, and its program as a graph. Its thread alone uses it.
 */
final class Gpu {

  /** The number of the graph that is captured first: the program, once. */
  static final int RUN = 0;

  /** The maximum number of collectives that a message lists. */
  private static final int MAX_NAMES = 3;

  private final DeviceProgram program;
  private final int device;
  private final Check check;
  private final GpuMemory memory;
  private final Map<StreamKind, CUstream_st> streams = new EnumMap<>(StreamKind.class);
  private final List<CUevent_st> events = new ArrayList<>();
  private ImmutableList<Runnable> work = ImmutableList.of();
  private final List<CapturedGraph> graphs = new ArrayList<>();
  private final List<Runnable> releases = new ArrayList<>();
  private boolean stepwise;

  /** For what must get through beside everything else. */
  private final CUstream_st rescue = new CUstream_st();

  private final Communicators communicators;
  private final SessionFailure ending;
  private final Duration timeout;

  /** Less than the host waits, so that it hears from kernels what they wait for. */
  private final Duration kernelTimeout;

  /**
   * @param device which of the GPUs that this process sees
   * @param timeout how long a run may take, and how long kernels wait for peers, nearly
   */
  Gpu(
      RankProgram rankProgram,
      DeviceProgram program,
      int device,
      long symmetricBytes,
      Sharing sharing,
      SessionFailure ending,
      Duration timeout) {
    this.program = program;
    this.ending = ending;
    this.timeout = timeout;
    this.kernelTimeout = timeout.multipliedBy(9).dividedBy(10);
    this.device = device;
    this.check = new Check(program.rank());
    check.runtime(cudart.cudaSetDevice(device), "cudaSetDevice");
    this.communicators = new Communicators(check);
    check.runtime(
        cudart.cudaStreamCreateWithFlags(rescue, cudart.cudaStreamNonBlocking),
        "cudaStreamCreateWithFlags");
    for (var stream : StreamKind.values()) {
      var made = new CUstream_st();
      check.runtime(
          cudart.cudaStreamCreateWithFlags(made, cudart.cudaStreamNonBlocking),
          "cudaStreamCreateWithFlags");
      streams.put(stream, made);
    }
    // Each side stream is joined at the end, by an event of its own.
    for (int i = 0; i < program.events() + 2 * StreamKind.values().length; i++) {
      events.add(event(cudart.cudaEventDisableTiming));
    }
    // Last, as it is what most likely fails, and frees what it has by itself then.
    try {
      this.memory = new GpuMemory(rankProgram, program, symmetricBytes, sharing, check);
    } catch (RuntimeException e) {
      throw Release.after(e, eventsAndStreams());
    }
  }

  private List<Runnable> eventsAndStreams() {
    var steps = new ArrayList<Runnable>();
    events.forEach(
        e -> steps.add(() -> check.runtime(cudart.cudaEventDestroy(e), "cudaEventDestroy")));
    streams
        .values()
        .forEach(
            s -> steps.add(() -> check.runtime(cudart.cudaStreamDestroy(s), "cudaStreamDestroy")));
    steps.add(() -> check.runtime(cudart.cudaStreamDestroy(rescue), "cudaStreamDestroy"));
    return steps;
  }

  /** {@return a new event, which the caller destroys} */
  CUevent_st event(int flags) {
    var event = new CUevent_st();
    check.runtime(cudart.cudaEventCreateWithFlags(event, flags), "cudaEventCreateWithFlags");
    return event;
  }

  int device() {
    return device;
  }

  /** {@return one of CUDA's attributes of devices} */
  int attribute(int which) {
    var value = new int[1];
    check.runtime(cudart.cudaDeviceGetAttribute(value, which, device), "cudaDeviceGetAttribute");
    return value[0];
  }

  GpuMemory memory() {
    return memory;
  }

  Check check() {
    return check;
  }

  CUstream_st stream(StreamKind stream) {
    return Objects.requireNonNull(streams.get(stream));
  }

  CUevent_st event(int index, DeviceStep of) {
    if (index >= program.events()) {
      throw new IllegalStateException("no event " + index + " for " + of);
    }
    return events.get(index);
  }

  void onClose(Runnable release) {
    releases.add(release);
  }

  /**
   * Resolves addresses, compiles kernels and joins communicators, with all other ranks.
   *
   * @param products on which all ranks agree
   */
  void prepare(
      Peers peers, ImmutableMap<Communicators.Key, ncclUniqueId> ids, ProductChoices products) {
    releases.add(communicators::close);
    communicators.join(program.rank(), ids, memory, ending, timeout);
    var preparation = new Preparation(this, peers, communicators, products, kernelTimeout);
    work = preparation.steps(program.steps());
  }

  /** {@return the number of a graph that does so many runs of the program} */
  int capture(int times) {
    return capture(
        () -> {
          for (int i = 0; i < times; i++) {
            enqueue();
          }
        });
  }

  /** {@return the number of a graph that does one graph of the program once} */
  int captureOne(int graph) {
    return capture(
        () -> {
          work.subList(program.begins().get(graph), program.end(graph)).forEach(Runnable::run);
          joinStreams(program.steps(graph));
        });
  }

  /** Puts a run of the program after what is in the stream of compute. */
  void enqueue() {
    work.subList(program.begins().get(0), work.size()).forEach(Runnable::run);
    joinStreams(program.run());
  }

  /** Puts what comes before the first run after what is in the stream of compute. */
  void enqueueSetup() {
    work.subList(0, program.begins().get(0)).forEach(Runnable::run);
    joinStreams(program.setup());
  }

  /**
   * {@return the number of a graph that does what is called so, and nothing else, so many times}
   */
  int captureOnly(String label, int times) {
    return capture(
        () -> {
          for (int i = 0; i < times; i++) {
            for (int step = program.begins().get(0); step < work.size(); step++) {
              if (TimedGraph.label(program.steps().get(step)).filter(label::equals).isPresent()) {
                work.get(step).run();
              }
            }
          }
        });
  }

  /**
   * {@return the number of a graph that does a run of the program}
   *
   * @param begin is called first, while streams are captured
   * @param around gets each step, in order, and what puts it into its stream, and has to call that
   */
  int captureStepwise(Runnable begin, BiConsumer<DeviceStep, Runnable> around) {
    stepwise = true;
    try {
      return capture(
          () -> {
            begin.run();
            for (int i = program.begins().get(0); i < work.size(); i++) {
              around.accept(program.steps().get(i), work.get(i));
            }
            joinStreams(program.run());
          });
    } finally {
      stepwise = false;
    }
  }

  /** {@return whether each step is to begin when the one before it has ended} */
  boolean isStepwise() {
    return stepwise;
  }

  private int capture(Runnable enqueue) {
    graphs.add(captured(enqueue));
    return graphs.size() - 1;
  }

  /** {@return a graph of what is put into streams, which the caller closes} */
  CapturedGraph captured(Runnable enqueue) {
    return new CapturedGraph(check, stream(StreamKind.COMPUTE), enqueue);
  }

  /** Has compute wait for all side streams that some steps use. */
  private void joinStreams(List<DeviceStep> steps) {
    for (var stream : StreamKind.values()) {
      boolean used =
          stream != StreamKind.COMPUTE && steps.stream().anyMatch(step -> step.stream() == stream);
      if (used) {
        var done = events.get(program.events() + stream.ordinal());
        check.runtime(cudart.cudaEventRecord(done, stream(stream)), "cudaEventRecord");
        check.runtime(
            cudart.cudaStreamWaitEvent(stream(StreamKind.COMPUTE), done, 0), "cudaStreamWaitEvent");
      }
    }
  }

  void launch(int graph) {
    graphs.get(graph).launch(stream(StreamKind.COMPUTE));
  }

  /** Waits until everything is done, which takes no longer than a run may. */
  void await() {
    await(1);
  }

  /**
   * Waits until everything is done.
   *
   * @param runs how many runs that may be
   * @throws RunException when the GPU reports an error, a kernel or the GPU does not get on, or the
   *     session ends for another reason
   */
  void await(int runs) {
    long begin = System.nanoTime();
    long most = LongMath.saturatedMultiply(timeout.toNanos(), runs);
    var origin = stream(StreamKind.COMPUTE);
    boolean stopping = false;
    while (true) {
      int status = cudart.cudaStreamQuery(origin);
      if (status == cudart.cudaSuccess) {
        break;
      }
      if (status != cudart.cudaErrorNotReady) {
        check.run(status);
      }
      if (System.nanoTime() - begin > most) {
        ending.fail(new RunException(notDone(Duration.ofNanos(most))));
      }
      if (ending.hasBegun()) {
        if (!stopping) {
          stopping = true;
          stop();
        } else if (ending.isOverdue()) {
          break;
        }
      }
      Thread.onSpinWait();
    }
    requireNoFailure();
  }

  /**
   * Looks for what failed in runs until now, without waiting for any.
   *
   * @throws RunException when a kernel gave up waiting for its peers, or the session has ended
   */
  void requireNoFailure() {
    var gaveUp = memory.failures().failure(kernelTimeout);
    if (gaveUp.isPresent()) {
      ending.fail(new RunException("rank %s: %s".formatted(program.rank(), gaveUp.get())));
    }
    if (ending.hasBegun()) {
      throw ending.cause().orElseThrow();
    }
  }

  /**
   * {@return whether this rank may launch a captured graph while another one puts the same steps
   * into its streams one by one} NCCL wants all ranks to do the same.
   */
  boolean mayCaptureAlone() {
    return program.steps().stream().noneMatch(DeviceStep.Nccl.class::isInstance);
  }

  private String notDone(Duration most) {
    var byNccl =
        program.steps().stream()
            .filter(step -> step instanceof DeviceStep.Nccl)
            .map(step -> memory.failures().describe(((DeviceStep.Nccl) step).label()))
            .distinct()
            .toList();
    return "rank %s: its GPU is not done after %s%s"
        .formatted(
            program.rank(),
            Units.duration(most),
            byNccl.isEmpty()
                ? ""
                : "; NCCL, which does not say where it waits, does %s%s"
                    .formatted(
                        String.join(", ", byNccl.subList(0, Math.min(MAX_NAMES, byNccl.size()))),
                        byNccl.size() > MAX_NAMES ? ", ..." : ""));
  }

  /** Makes kernels that wait for peers give up, including NCCL's. */
  void stop() {
    communicators.abort();
    memory.giveUp(rescue);
  }

  /**
   * {@return whether nothing runs any more}
   *
   * @param most how long to wait for that
   */
  boolean isIdle(Duration most) {
    long begin = System.nanoTime();
    while (cudart.cudaStreamQuery(stream(StreamKind.COMPUTE)) == cudart.cudaErrorNotReady) {
      if (System.nanoTime() - begin > most.toNanos()) {
        return false;
      }
      Thread.onSpinWait();
    }
    return true;
  }

  /** {@return microseconds of so many launches of a graph, on the GPU's clock} */
  double time(int graph, int launches) {
    return time(
        () -> {
          for (int i = 0; i < launches; i++) {
            launch(graph);
          }
        });
  }

  /** {@return microseconds of what is put into the stream of compute, on the GPU's clock} */
  double time(Runnable enqueue) {
    var begin = event(0);
    var end = event(0);
    check.runtime(cudart.cudaEventRecord(begin, stream(StreamKind.COMPUTE)), "cudaEventRecord");
    enqueue.run();
    check.runtime(cudart.cudaEventRecord(end, stream(StreamKind.COMPUTE)), "cudaEventRecord");
    await();
    var millis = new float[1];
    check.runtime(cudart.cudaEventElapsedTime(millis, begin, end), "cudaEventElapsedTime");
    check.runtime(cudart.cudaEventDestroy(begin), "cudaEventDestroy");
    check.runtime(cudart.cudaEventDestroy(end), "cudaEventDestroy");
    return millis[0] * 1000.0;
  }

  /** Copies bytes, to the GPU or from it, and waits for that. */
  void copy(Pointer to, Pointer from, long bytes) {
    enqueueCopy(to, from, bytes);
    finishCopies();
  }

  /**
   * Begins to copy bytes from pinned memory.
   *
   * @param done is recorded after the copy
   */
  void startCopy(Pointer to, Pointer from, long bytes, CUevent_st done) {
    enqueueCopy(to, from, bytes);
    check.runtime(cudart.cudaEventRecord(done, stream(StreamKind.COMPUTE)), "cudaEventRecord");
  }

  private void enqueueCopy(Pointer to, Pointer from, long bytes) {
    check.runtime(
        cudart.cudaMemcpyAsync(
            to, from, bytes, cudart.cudaMemcpyDefault, stream(StreamKind.COMPUTE)),
        "cudaMemcpyAsync of %s bytes".formatted(bytes));
  }

  /** Waits for copies that were begun. */
  void finishCopies() {
    check.runtime(
        cudart.cudaStreamSynchronize(stream(StreamKind.COMPUTE)), "cudaStreamSynchronize");
  }

  /**
   * Frees everything; all other ranks have stopped or do this at once.
   *
   * @throws RunException for the first thing that failed; the others are freed all the same
   */
  void close() {
    var steps = new ArrayList<Runnable>();
    streams
        .values()
        .forEach(
            s ->
                steps.add(
                    () -> check.runtime(cudart.cudaStreamSynchronize(s), "cudaStreamSynchronize")));
    graphs.forEach(graph -> steps.add(graph::close));
    steps.addAll(releases.reversed());
    steps.addAll(eventsAndStreams());
    steps.add(memory::free);
    Release.all(steps);
  }
}
