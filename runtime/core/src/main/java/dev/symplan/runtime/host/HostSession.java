package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.Stream;
import dev.symplan.runtime.RunException;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/** Memory, threads and the loop of the host backend. */
final class HostSession implements Session {

  /** What fresh arenas are filled with: no number that a program computes looks like it. */
  private static final byte POISON = (byte) 0xFB;

  private static final long ALIGNMENT = 4096;

  private final Executable executable;
  private final Arena memory = Arena.ofShared();
  private final List<HostMemory> ranks = new ArrayList<>();
  private final List<RankRunner> runners = new ArrayList<>();
  private final Rendezvous rendezvous;
  private final ExecutorService threads;

  HostSession(Executable executable, Duration patience) {
    this.executable = executable;
    this.rendezvous =
        new Rendezvous(
            executable.ranks().stream().mapToInt(RankProgram::events).toArray(), patience);
    this.threads =
        Executors.newCachedThreadPool(
            Thread.ofPlatform().daemon().name("symplan-rank-", 0).factory());
    try {
      for (var program : executable.ranks()) {
        ranks.add(
            new HostMemory(
                program, arena(executable.symmetricBytes()), arena(program.localBytes()), memory));
      }
      var collectives = new Collectives(executable, ranks, rendezvous);
      for (int rank = 0; rank < ranks.size(); rank++) {
        runners.add(new RankRunner(executable.ranks().get(rank), ranks, collectives, rendezvous));
      }
    } catch (RuntimeException | Error e) {
      close();
      throw e;
    }
  }

  private MemorySegment arena(long bytes) {
    try {
      return memory.allocate(Math.max(bytes, 1), ALIGNMENT).fill(POISON);
    } catch (OutOfMemoryError e) {
      throw new RunException("no memory for an arena of %d bytes".formatted(bytes), e);
    }
  }

  @Override
  public int ranks() {
    return ranks.size();
  }

  @Override
  public ImmutableList<String> inputNames() {
    return executable.ranks().getFirst().inputNames();
  }

  @Override
  public int outputCount() {
    return executable.ranks().getFirst().outputs().size();
  }

  @Override
  public Optional<HostTensor> input(int rank, int index) {
    return program(rank).inputs().get(index).map(ranks.get(rank)::tensor);
  }

  private RankProgram program(int rank) {
    return executable.ranks().get(rank);
  }

  @Override
  public boolean isExternalInput(int rank, int index) {
    return program(rank).inputs().get(index).filter(ref -> ref.arena().isExternal()).isPresent();
  }

  @Override
  public void bindInput(int rank, int index, HostTensor tensor) {
    var ref = program(rank).inputs().get(index);
    var name = "input '" + program(rank).inputNames().get(index) + "'";
    ranks.get(rank).bindInput(index, checkedMemory(ref, tensor, name));
  }

  @Override
  public void bindOutput(int rank, int index, HostTensor tensor) {
    var ref = program(rank).outputs().get(index);
    ranks.get(rank).bindOutput(index, checkedMemory(ref, tensor, "output " + index));
  }

  private static MemorySegment checkedMemory(
      Optional<TensorRef> ref, HostTensor tensor, String name) {
    if (ref.isEmpty() || !ref.get().arena().isExternal()) {
      throw new IllegalArgumentException(name + " is planned: it has its place in an arena");
    }
    TensorType expected = ref.get().type();
    if (tensor.dtype() != expected.dtype()
        || !tensor.type().sizes().equals(expected.sizes())
        || !tensor.type().strides().equals(expected.strides())) {
      throw new IllegalArgumentException(
          "%s is %s, not %s".formatted(name, expected, tensor.type()));
    }
    return tensor.memory();
  }

  @Override
  public void run() {
    rendezvous.startRun();
    var running = new ArrayList<Future<?>>();
    for (var runner : runners) {
      for (Stream stream : runner.program().streams()) {
        running.add(threads.submit(() -> runner.run(stream)));
      }
    }
    for (var future : running) {
      finish(future);
    }
    @Nullable RunException failure = rendezvous.failure();
    if (failure != null) {
      throw failure;
    }
  }

  /** Waits for a thread; interrupting the caller ends the run, and all threads with it. */
  private void finish(Future<?> future) {
    while (true) {
      try {
        future.get();
        return;
      } catch (InterruptedException e) {
        rendezvous.abort(new RunException("the run was interrupted", e));
        Thread.interrupted();
      } catch (ExecutionException e) {
        throw new IllegalStateException("a rank's thread died", e);
      }
    }
  }

  @Override
  public Optional<HostTensor> output(int rank, int index) {
    return program(rank).outputs().get(index).map(ranks.get(rank)::tensor);
  }

  @Override
  public void close() {
    threads.shutdownNow();
    memory.close();
  }
}
