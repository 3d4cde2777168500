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
 * steady state do, and launched in the caller's stream itself. Until then, and for all others, the
 * steps are put into the GPU's own streams one by one.
 */
final class CallerRuns {
  private static final CUstream_st DEFAULT = new CUstream_st(new DevicePointer(0));

  record Copy(DevicePointer from, DevicePointer to, long bytes) {}

  /** A tensor that ops access where the caller has it. */
  record Direct(ArenaKind arena, int index, long at) {}

  /**
   * Memory of the caller, as runs use it.
   *
   * @param addresses of what ops access where the caller has it
   * @param before copies into the plan's memory
   * @param after copies from there
   */
  record Binding(
      ImmutableLongArray addresses,
      ImmutableList<Direct> directs,
      ImmutableList<Copy> before,
      ImmutableList<Copy> after) {}

  private final Gpu gpu;
  private final boolean captures;

  /** The work that the caller's stream held before a run that is put into the GPU's own streams. */
  private final CUevent_st given;

  /** The end of such a run. */
  private final CUevent_st ran;

  /**
   * The end of the last run with its copies, in whatever stream: the next one uses the arenas. The
   * default stream, which always exists, has it recorded only where something waits for it.
   */
  private final CUevent_st done;

  private final RepeatedAddresses<CapturedGraph> graphs = new RepeatedAddresses<>();
  private Binding binding =
      new Binding(
          ImmutableLongArray.of(), ImmutableList.of(), ImmutableList.of(), ImmutableList.of());

  private boolean lastInDefault;

  /** The graph of the addresses, once there is one. */
  private Optional<CapturedGraph> captured = Optional.empty();

  CallerRuns(Gpu gpu) {
    this.gpu = gpu;
    this.captures = gpu.mayCaptureAlone();
    this.given = gpu.event(cudart.cudaEventDisableTiming);
    this.ran = gpu.event(cudart.cudaEventDisableTiming);
    this.done = gpu.event(cudart.cudaEventDisableTiming);
    gpu.onClose(
        () -> {
          awaitLast();
          graphs.all().forEach(CapturedGraph::close);
          for (var event : List.of(given, ran, done)) {
            gpu.check().runtime(cudart.cudaEventDestroy(event), "cudaEventDestroy");
          }
        });
  }

  /**
   * {@return how runs use memory of the caller}
   *
   * @param memory which fits the signature
   * @throws RunException when a copy would need more than one call
   */
  Binding binding(RankProgram program, Signature signature, CallerMemory memory) {
    var direct = ImmutableList.<Direct>builder();
    var in = ImmutableList.<Copy>builder();
    var out = ImmutableList.<Copy>builder();
    bind(
        signature.inputs(),
        program.inputs(),
        memory.inputs(),
        ArenaKind.EXTERNAL_INPUT,
        direct,
        in,
        out);
    bind(
        signature.outputs(),
        program.outputs(),
        memory.outputs(),
        ArenaKind.EXTERNAL_OUTPUT,
        direct,
        out,
        out);
    var directs = direct.build();
    var addresses = ImmutableLongArray.builder(directs.size());
    directs.forEach(tensor -> addresses.add(tensor.at()));
    return new Binding(
        addresses.build(),
        directs,
        in.build(),
        out.build().stream()
            .map(copy -> new Copy(copy.to(), copy.from(), copy.bytes()))
            .collect(ImmutableList.toImmutableList()));
  }

  /** Has the next runs use memory of the caller. */
  void use(Binding next) {
    binding = next;
    captured = Optional.empty();
  }

  /**
   * @param copies from the caller's memory to the plan's
   * @param back those of inputs that are copied in the other direction as well
   */
  private void bind(
      List<Slot> slots,
      List<Optional<TensorRef>> refs,
      CallerMemory.Stretches memory,
      ArenaKind arena,
      ImmutableList.Builder<Direct> direct,
      ImmutableList.Builder<Copy> copies,
      ImmutableList.Builder<Copy> back) {
    for (int i = 0; i < slots.size(); i++) {
      long at = memory.addresses().get(i);
      switch (slots.get(i).use()) {
        case Use.Direct _ -> direct.add(new Direct(arena, i, at));
        case Use.Copied(var place, boolean written) -> {
          var ref = refs.get(i).orElseThrow();
          if (!ref.type().isDense()) {
            throw new RunException(
                "%s has gaps between its elements, and the plan has it at %s: plan it as external"
                    .formatted(slots.get(i).name(), place));
          }
          var copy =
              new Copy(
                  new DevicePointer(at),
                  new DevicePointer(gpu.memory().address(ref)),
                  ref.type().storageBytes());
          copies.add(copy);
          if (written) {
            back.add(copy);
          }
        }
        case Use.Nothing _, Use.OfInput _, Use.OfOutput _ -> {}
      }
    }
  }

  /**
   * Puts a run after what is in a stream, and has the stream go on after it.
   *
   * @param setup whether the program's setup comes first
   */
  void run(CUstream_st callers, boolean setup) {
    var check = gpu.check();
    if (captures && captured.isEmpty()) {
      // Built first: a capture must not wait for another stream.
      captured = graphs.get(binding.addresses(), this::capture);
    }
    boolean inDefault = callers.isNull();
    if (!inDefault || !lastInDefault) {
      recordLast();
      check.runtime(cudart.cudaStreamWaitEvent(callers, done, 0), "cudaStreamWaitEvent");
    }
    binding.before().forEach(copy -> copy(copy, callers));
    if (setup) {
      enqueue(callers, gpu::enqueueSetup);
    }
    if (captured.isPresent()) {
      captured.get().launch(callers);
    } else {
      enqueue(callers, gpu::enqueue);
    }
    binding.after().forEach(copy -> copy(copy, callers));
    lastInDefault = inDefault;
    if (!inDefault) {
      check.runtime(cudart.cudaEventRecord(done, callers), "cudaEventRecord");
    }
    if (graphs.hasDropped()) {
      // One may still run.
      awaitLast();
      graphs.dropped().forEach(CapturedGraph::close);
    }
  }

  private CapturedGraph capture() {
    place();
    return gpu.captured(gpu::enqueue);
  }

  /** Only here: a captured graph has its addresses already. */
  private void place() {
    binding
        .directs()
        .forEach(
            tensor -> gpu.memory().external().move(tensor.arena(), tensor.index(), tensor.at()));
  }

  /** Puts the steps into the GPU's own streams, between what the caller's has and will have. */
  private void enqueue(CUstream_st callers, Runnable steps) {
    var check = gpu.check();
    var own = gpu.stream(StreamKind.COMPUTE);
    place();
    check.runtime(cudart.cudaEventRecord(given, callers), "cudaEventRecord");
    check.runtime(cudart.cudaStreamWaitEvent(own, given, 0), "cudaStreamWaitEvent");
    steps.run();
    check.runtime(cudart.cudaEventRecord(ran, own), "cudaEventRecord");
    check.runtime(cudart.cudaStreamWaitEvent(callers, ran, 0), "cudaStreamWaitEvent");
  }

  private void copy(Copy copy, CUstream_st stream) {
    if (copy.bytes() > 0) {
      gpu.check()
          .runtime(
              cudart.cudaMemcpyAsync(
                  copy.to(), copy.from(), copy.bytes(), cudart.cudaMemcpyDeviceToDevice, stream),
              "cudaMemcpyAsync");
    }
  }

  /** Has the event mark the end of the last run. */
  private void recordLast() {
    if (lastInDefault) {
      gpu.check().runtime(cudart.cudaEventRecord(done, DEFAULT), "cudaEventRecord");
    }
  }

  private void awaitLast() {
    recordLast();
    gpu.check().runtime(cudart.cudaEventSynchronize(done), "cudaEventSynchronize");
  }
}
