package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.DeviceStep;
import dev.symplan.planner.Stream;
import dev.symplan.runtime.RunException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiConsumer;
import org.bytedeco.cuda.cudart.CUevent_st;
import org.bytedeco.cuda.cudart.CUgraphExec_st;
import org.bytedeco.cuda.cudart.CUgraph_st;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.cuda.nccl.ncclUniqueId;
import org.bytedeco.javacpp.Pointer;

/**
 * One rank's GPU: streams, events, memory, and its program as a graph. Its thread alone uses it.
 */
final class Gpu {
  private final DeviceProgram program;
  private final int device;
  private final Check check;
  private final GpuMemory memory;
  private final Map<Stream, CUstream_st> streams = new EnumMap<>(Stream.class);
  private final List<CUevent_st> events = new ArrayList<>();
  private ImmutableList<Runnable> work = ImmutableList.of();
  private final List<CUgraphExec_st> graphs = new ArrayList<>();
  private final List<Runnable> releases = new ArrayList<>();

  /**
   * @param device which of the GPUs that this process sees
   */
  Gpu(RankProgram rankProgram, DeviceProgram program, int device, long symmetricBytes) {
    this.program = program;
    this.device = device;
    this.check = new Check(program.rank());
    check.runtime(cudart.cudaSetDevice(device), "cudaSetDevice");
    this.memory = new GpuMemory(rankProgram, symmetricBytes, program.places(), check);
    for (var stream : Stream.values()) {
      var made = new CUstream_st();
      check.runtime(
          cudart.cudaStreamCreateWithFlags(made, cudart.cudaStreamNonBlocking),
          "cudaStreamCreateWithFlags");
      streams.put(stream, made);
    }
    // Each side stream is joined at the end, by an event of its own.
    for (int i = 0; i < program.events() + 2 * Stream.values().length; i++) {
      events.add(event(cudart.cudaEventDisableTiming));
    }
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

  GpuMemory memory() {
    return memory;
  }

  Check check() {
    return check;
  }

  CUstream_st stream(Stream stream) {
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
   * @param peers is closed with this
   */
  void prepare(Peers peers, ImmutableMap<Communicators.Key, ncclUniqueId> ids, Duration patience) {
    releases.add(peers::close);
    var communicators = Communicators.join(program.rank(), ids, memory, check);
    releases.add(communicators::close);
    var preparation = new Preparation(this, peers, communicators, patience);
    work = preparation.steps(program.steps());
  }

  /** {@return the number of a graph that does the program so many times} */
  int capture(int times) {
    return capture(
        () -> {
          for (int i = 0; i < times; i++) {
            work.forEach(Runnable::run);
            joinStreams();
          }
        });
  }

  /**
   * {@return the number of a graph that does the program once}
   *
   * @param begin is called first, while streams are captured
   * @param around gets each step, in order, and what puts it into its stream, and has to call that
   */
  int captureStepwise(Runnable begin, BiConsumer<DeviceStep, Runnable> around) {
    return capture(
        () -> {
          begin.run();
          for (int i = 0; i < work.size(); i++) {
            around.accept(program.steps().get(i), work.get(i));
          }
          joinStreams();
        });
  }

  private int capture(Runnable enqueue) {
    var origin = stream(Stream.COMPUTE);
    check.runtime(
        cudart.cudaStreamBeginCapture(origin, cudart.cudaStreamCaptureModeRelaxed),
        "cudaStreamBeginCapture");
    var graph = new CUgraph_st();
    try {
      enqueue.run();
    } finally {
      int status = cudart.cudaStreamEndCapture(origin, graph);
      if (graph.isNull()) {
        check.runtime(status, "cudaStreamEndCapture");
      }
    }
    var executable = new CUgraphExec_st();
    check.runtime(cudart.cudaGraphInstantiate(executable, graph, 0), "cudaGraphInstantiate");
    check.runtime(cudart.cudaGraphDestroy(graph), "cudaGraphDestroy");
    check.runtime(cudart.cudaGraphUpload(executable, origin), "cudaGraphUpload");
    check.runtime(cudart.cudaStreamSynchronize(origin), "cudaStreamSynchronize");
    graphs.add(executable);
    return graphs.size() - 1;
  }

  private void joinStreams() {
    for (var stream : Stream.values()) {
      boolean used =
          stream != Stream.COMPUTE
              && program.steps().stream().anyMatch(step -> step.stream() == stream);
      if (used) {
        var done = events.get(program.events() + stream.ordinal());
        check.runtime(cudart.cudaEventRecord(done, stream(stream)), "cudaEventRecord");
        check.runtime(
            cudart.cudaStreamWaitEvent(stream(Stream.COMPUTE), done, 0), "cudaStreamWaitEvent");
      }
    }
  }

  void launch(int graph) {
    check.runtime(
        cudart.cudaGraphLaunch(graphs.get(graph), stream(Stream.COMPUTE)), "cudaGraphLaunch");
  }

  /**
   * Waits until everything is done.
   *
   * @throws RunException when the GPU reports an error or a kernel or the GPU does not get on
   */
  void await(Duration patience) {
    long begin = System.nanoTime();
    long most = patience.toNanos();
    var origin = stream(Stream.COMPUTE);
    while (true) {
      int status = cudart.cudaStreamQuery(origin);
      if (status == cudart.cudaSuccess) {
        break;
      }
      if (status != cudart.cudaErrorNotReady) {
        check.runtime(status, "the run");
      }
      if (System.nanoTime() - begin > most) {
        throw new RunException(
            "rank %d: the GPU is not done after %d s"
                .formatted(program.rank(), patience.toSeconds()));
      }
      Thread.onSpinWait();
    }
    if (memory.hasFailed()) {
      throw new RunException(
          "rank %d: a collective waited too long for its peers".formatted(program.rank()));
    }
  }

  /** {@return microseconds of so many launches of a graph, on the GPU's clock} */
  double time(int graph, int launches, Duration patience) {
    var begin = event(0);
    var end = event(0);
    check.runtime(cudart.cudaEventRecord(begin, stream(Stream.COMPUTE)), "cudaEventRecord");
    for (int i = 0; i < launches; i++) {
      launch(graph);
    }
    check.runtime(cudart.cudaEventRecord(end, stream(Stream.COMPUTE)), "cudaEventRecord");
    await(patience);
    var millis = new float[1];
    check.runtime(cudart.cudaEventElapsedTime(millis, begin, end), "cudaEventElapsedTime");
    check.runtime(cudart.cudaEventDestroy(begin), "cudaEventDestroy");
    check.runtime(cudart.cudaEventDestroy(end), "cudaEventDestroy");
    return millis[0] * 1000.0;
  }

  /** Copies bytes, to the GPU or from it, and waits for that. */
  void copy(Pointer to, Pointer from, long bytes) {
    var stream = stream(Stream.COMPUTE);
    check.runtime(
        cudart.cudaMemcpyAsync(to, from, bytes, cudart.cudaMemcpyDefault, stream),
        "cudaMemcpyAsync of %d bytes".formatted(bytes));
    check.runtime(cudart.cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }

  void close() {
    check.runtime(cudart.cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    graphs.forEach(g -> check.runtime(cudart.cudaGraphExecDestroy(g), "cudaGraphExecDestroy"));
    releases.reversed().forEach(Runnable::run);
    events.forEach(e -> check.runtime(cudart.cudaEventDestroy(e), "cudaEventDestroy"));
    streams.values().forEach(s -> check.runtime(cudart.cudaStreamDestroy(s), "cudaStreamDestroy"));
    memory.free();
  }
}
