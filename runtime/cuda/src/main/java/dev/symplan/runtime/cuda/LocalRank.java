package dev.symplan.runtime.cuda;

import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.runtime.failure.RunException;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import org.bytedeco.cuda.global.cudart;
import org.jspecify.annotations.Nullable;

/** A rank of this process: its GPU, the thread of that, and the copies in host memory. */
final class LocalRank {
  private final int rank;
  private final int device;
  private final SessionFailure ending;
  private final GpuThread thread;
  private @Nullable Gpu gpu;
  private @Nullable HostCopies copies;
  private @Nullable CallerRuns callerRuns;

  /** Made once, as runs shall make nothing. */
  private Runnable run = () -> {};

  /** The number of the captured graph that {@link #run} launches. */
  private volatile int toRun = Gpu.RUN;

  private volatile int times = 1;

  /**
   * @param device which of the GPUs that this process sees
   */
  LocalRank(int rank, int device, SessionFailure ending) {
    this.rank = rank;
    this.device = device;
    this.ending = ending;
    this.thread = new GpuThread("symplan-gpu-" + rank, ending::isOverdue);
  }

  /** Makes the GPU's context, if the process has none; to be called by the thread. */
  void makeContext() {
    new Check(rank).runtime(cudart.cudaSetDevice(device), "cudaSetDevice");
  }

  /** To be called by the thread. */
  void open(
      RankProgram rankProgram,
      DeviceProgram program,
      long symmetricBytes,
      Sharing sharing,
      Duration timeout) {
    var check = new Check(rank);
    KernelCompiler.begin(Architecture.of(device, check).targets(program), check);
    var opened = new Gpu(rankProgram, program, device, symmetricBytes, sharing, ending, timeout);
    var copied = new HostCopies(opened);
    gpu = opened;
    copies = copied;
    run =
        guarded(
            () -> {
              for (int i = 0; i < times; i++) {
                opened.launch(toRun);
              }
              opened.await(times);
              copied.ran();
            });
  }

  int rank() {
    return rank;
  }

  /** {@return runs on the caller's memory, by the calling thread} */
  CallerRuns callerRuns() {
    if (callerRuns == null) {
      here(() -> callerRuns = new CallerRuns(gpu()));
    }
    return Objects.requireNonNull(callerRuns);
  }

  /** Does something with the GPU in the calling thread, while the GPU's own has nothing to do. */
  void here(Runnable task) {
    var current = new int[1];
    var check = gpu().check();
    check.runtime(cudart.cudaGetDevice(current), "cudaGetDevice");
    if (current[0] == device) {
      task.run();
      return;
    }
    check.runtime(cudart.cudaSetDevice(device), "cudaSetDevice");
    try {
      task.run();
    } finally {
      check.runtime(cudart.cudaSetDevice(current[0]), "cudaSetDevice");
    }
  }

  int device() {
    return device;
  }

  GpuThread thread() {
    return thread;
  }

  /** {@return the GPU; empty if it could not be had} */
  Optional<Gpu> openGpu() {
    return Optional.ofNullable(gpu);
  }

  Gpu gpu() {
    return Objects.requireNonNull(gpu);
  }

  HostCopies copies() {
    return Objects.requireNonNull(copies);
  }

  /** Has the thread do something whose failure ends the session. */
  void start(Runnable task) {
    thread.start(guarded(task));
  }

  /** Has the thread launch a captured graph so many times, and wait for the last one. */
  void startRun(int graph, int launches) {
    toRun = graph;
    times = launches;
    thread.start(run);
  }

  private Runnable guarded(Runnable task) {
    return () -> {
      try {
        task.run();
      } catch (RuntimeException | Error e) {
        ending.fail(
            e instanceof RunException failed
                ? failed
                : new RunException("rank %s failed: %s".formatted(rank, e), e));
        throw e;
      }
    };
  }
}
