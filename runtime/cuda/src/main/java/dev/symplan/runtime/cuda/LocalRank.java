package dev.symplan.runtime.cuda;

import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.cuda.DeviceProgram;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A rank of this process: its GPU, the thread of that, and the copies in host memory. */
final class LocalRank {
  private final int rank;
  private final int device;
  private final GpuThread thread;
  private @Nullable Gpu gpu;
  private @Nullable HostCopies copies;

  /** Made once, as runs shall make nothing. */
  private Runnable run = () -> {};

  /**
   * @param device which of the GPUs that this process sees
   */
  LocalRank(int rank, int device) {
    this.rank = rank;
    this.device = device;
    this.thread = new GpuThread("symplan-gpu-" + rank);
  }

  /** To be called by the thread. */
  void open(RankProgram rankProgram, DeviceProgram program, long symmetricBytes, Duration limit) {
    var opened = new Gpu(rankProgram, program, device, symmetricBytes);
    var copied = new HostCopies(opened);
    gpu = opened;
    copies = copied;
    run =
        () -> {
          opened.launch(0);
          opened.await(limit);
          copied.ran();
        };
  }

  int rank() {
    return rank;
  }

  GpuThread thread() {
    return thread;
  }

  Gpu gpu() {
    return Objects.requireNonNull(gpu);
  }

  HostCopies copies() {
    return Objects.requireNonNull(copies);
  }

  /** Has the thread run the program once. */
  void startRun() {
    thread.start(run);
  }
}
