package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.runtime.CallerMemory;
import dev.symplan.runtime.Signature;
import dev.symplan.runtime.Signature.Slot;
import dev.symplan.runtime.Signature.Use;
import dev.symplan.runtime.failure.RunException;
import java.util.List;
import java.util.Optional;
import org.bytedeco.cuda.cudart.CUevent_st;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cudart;

/**
 * Runs of one GPU on the caller's memory, in order with the caller's stream, which the host does
 * not wait for. The calling thread puts them there: it costs less than to wake the GPU's own.
 *
 * <p>A graph is captured for addresses that come a second time, as those of an allocator in a
 * steady state do. Until then, and for all others, the steps are put into the streams one by one.
 */
final class CallerRuns {

  private record Copy(DevicePointer from, DevicePointer to, long bytes) {}

  private final Gpu gpu;
  private final CUevent_st given;
  private final CUevent_st done;
  private final RepeatedAddresses<CapturedGraph> graphs = new RepeatedAddresses<>();
  private ImmutableLongArray addresses = ImmutableLongArray.of();
  private ImmutableList<Copy> before = ImmutableList.of();
  private ImmutableList<Copy> after = ImmutableList.of();

  CallerRuns(Gpu gpu) {
    this.gpu = gpu;
    this.given = gpu.event(cudart.cudaEventDisableTiming);
    this.done = gpu.event(cudart.cudaEventDisableTiming);
    gpu.onClose(() -> gpu.check().runtime(cudart.cudaEventDestroy(given), "cudaEventDestroy"));
    gpu.onClose(() -> gpu.check().runtime(cudart.cudaEventDestroy(done), "cudaEventDestroy"));
    gpu.onClose(() -> graphs.all().forEach(CapturedGraph::close));
  }

  /**
   * Has the next runs use memory of the caller.
   *
   * @param memory which fits the signature
   * @throws RunException when a copy would need more than one call
   */
  void bind(RankProgram program, Signature signature, CallerMemory memory) {
    var moved = ImmutableLongArray.builder();
    var in = ImmutableList.<Copy>builder();
    var out = ImmutableList.<Copy>builder();
    bind(
        signature.inputs(), program.inputs(), memory.inputs(), ArenaKind.EXTERNAL_INPUT, moved, in);
    bind(
        signature.outputs(),
        program.outputs(),
        memory.outputs(),
        ArenaKind.EXTERNAL_OUTPUT,
        moved,
        out);
    addresses = moved.build();
    before = in.build();
    after =
        out.build().stream()
            .map(copy -> new Copy(copy.to(), copy.from(), copy.bytes()))
            .collect(ImmutableList.toImmutableList());
  }

  /**
   * @param copies from the caller's memory to the plan's
   */
  private void bind(
      List<Slot> slots,
      List<Optional<TensorRef>> refs,
      CallerMemory.Stretches memory,
      ArenaKind arena,
      ImmutableLongArray.Builder moved,
      ImmutableList.Builder<Copy> copies) {
    for (int i = 0; i < slots.size(); i++) {
      long at = memory.addresses().get(i);
      switch (slots.get(i).use()) {
        case Use.Direct _ -> {
          gpu.memory().external().move(arena, i, at);
          moved.add(at);
        }
        case Use.Copied(var place) -> {
          var ref = refs.get(i).orElseThrow();
          if (!ref.type().isDense()) {
            throw new RunException(
                "%s has gaps between its elements, and the plan has it at %s: plan it as external"
                    .formatted(slots.get(i).name(), place));
          }
          copies.add(
              new Copy(
                  new DevicePointer(at),
                  new DevicePointer(gpu.memory().address(ref)),
                  ref.type().storageBytes()));
        }
        case Use.Nothing _, Use.OfInput _, Use.OfOutput _ -> {}
      }
    }
  }

  /** Puts a run after what is in a stream, and has the stream go on after it. */
  void run(CUstream_st callers) {
    var check = gpu.check();
    var own = gpu.stream(StreamKind.COMPUTE);
    // Built first: a capture must not wait for another stream.
    var graph = graphs.get(addresses, () -> gpu.captured(gpu::enqueue));
    check.runtime(cudart.cudaEventRecord(given, callers), "cudaEventRecord");
    check.runtime(cudart.cudaStreamWaitEvent(own, given, 0), "cudaStreamWaitEvent");
    before.forEach(copy -> copy(copy, own));
    graph.ifPresentOrElse(captured -> captured.launch(own), gpu::enqueue);
    after.forEach(copy -> copy(copy, own));
    check.runtime(cudart.cudaEventRecord(done, own), "cudaEventRecord");
    check.runtime(cudart.cudaStreamWaitEvent(callers, done, 0), "cudaStreamWaitEvent");
    graphs.dropped().forEach(this::close);
  }

  private void copy(Copy copy, CUstream_st stream) {
    if (copy.bytes() > 0) {
      gpu.check()
          .runtime(
              cudart.cudaMemcpyAsync(
                  copy.to(), copy.from(), copy.bytes(), cudart.cudaMemcpyDeviceToDevice, stream),
              "cudaMemcpyAsync of %s bytes".formatted(copy.bytes()));
    }
  }

  /** A graph may still run when it is dropped. */
  private void close(CapturedGraph graph) {
    gpu.check()
        .runtime(
            cudart.cudaStreamSynchronize(gpu.stream(StreamKind.COMPUTE)), "cudaStreamSynchronize");
    graph.close();
  }
}
