package dev.symplan.runtime.cuda.cudnn;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.Attention;
import dev.symplan.codegen.cuda.DeviceStep.AttentionBackward;
import dev.symplan.codegen.cuda.DeviceStep.Convolution;
import dev.symplan.codegen.cuda.DeviceStep.Scores;
import dev.symplan.codegen.cuda.SlidingWindows;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.cuda.cudnn.OperationGraph.Built;
import dev.symplan.runtime.cuda.library.HandlePool;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.cudnn.cudnnContext;
import org.bytedeco.cuda.global.cudnn;
import org.bytedeco.javacpp.Pointer;

/**
 * Attention and convolutions by cuDNN on one GPU and stream. Only the GPU's thread uses it. Steps
 * of the same types are planned once, wherever their tensors are.
 */
public final class CudnnCalls implements AutoCloseable {

  /** The alignment of all parts of the workspace, in bytes. */
  private static final long ALIGNMENT = 256;

  /**
   * The properties of a step that a cuDNN plan depends on: everything except addresses and names.
   */
  private sealed interface Key {

    record OfAttention(
        boolean backward,
        ImmutableList<TensorType> types,
        boolean biased,
        boolean logs,
        boolean causal,
        double scale)
        implements Key {
      static Key of(
          boolean backward, ImmutableList<TensorRef> tensors, Scores scores, boolean logs) {
        return new OfAttention(
            backward,
            typesOf(tensors),
            scores.bias().isPresent(),
            logs,
            scores.causal(),
            scores.scale());
      }
    }

    record OfConvolution(
        Convolution.Pass pass, ImmutableList<TensorType> types, SlidingWindows windows)
        implements Key {}

    static ImmutableList<TensorType> typesOf(ImmutableList<TensorRef> tensors) {
      return tensors.stream().map(TensorRef::type).collect(ImmutableList.toImmutableList());
    }
  }

  private record Planned(Built built, ExecutionPlan plan) {

    long bytes() {
      return built.scratch().stream().mapToLong(CudnnCalls::aligned).sum() + plan.workspaceBytes();
    }
  }

  private static final HandlePool<cudnnContext> HANDLES = new HandlePool<>();

  private final int device;
  private final cudnnContext handle;
  private final LongFunction<Pointer> pointers;
  private final Map<Key, Optional<Planned>> plans = new HashMap<>();
  private final List<OperationGraph> graphs = new ArrayList<>();

  /**
   * @param device the current GPU, as this process counts them
   * @param pointers to locations in the GPU's memory
   * @throws CudnnException when cuDNN cannot be used on the current GPU
   */
  public CudnnCalls(int device, CUstream_st stream, LongFunction<Pointer> pointers) {
    this.device = device;
    this.pointers = pointers;
    this.handle = HANDLES.take(device, CudnnCalls::createHandle);
    CudnnException.check(cudnn.cudnnSetStream(handle, stream), "cudnnSetStream");
  }

  private static cudnnContext createHandle() {
    var made = new cudnnContext();
    CudnnException.check(cudnn.cudnnCreate(made), "cudnnCreate");
    return made;
  }

  /**
   * A step that cuDNN does.
   *
   * @param workspaceBytes the bytes that each call needs beside its tensors
   * @param call puts it into the stream, given the address of that memory
   */
  public record Prepared(long workspaceBytes, LongConsumer call) {}

  /**
   * {@return the step; empty if cuDNN refuses it}
   *
   * @param locations pointers to tensors on the GPU, where they are when the step is called
   */
  public Optional<Prepared> prepare(Attention step, Function<TensorRef, Pointer> locations) {
    var tensors = step.tensors();
    var key = Key.OfAttention.of(false, tensors, step.scores(), step.logs().isPresent());
    return prepare(
        key,
        graph -> AttentionGraphs.forward(graph, step),
        EngineRule.ATTENTION,
        tensors,
        locations);
  }

  /**
   * {@return the step; empty if cuDNN refuses it}
   *
   * @param locations pointers to tensors on the GPU, where they are when the step is called
   */
  public Optional<Prepared> prepare(
      AttentionBackward step, Function<TensorRef, Pointer> locations) {
    var tensors = step.tensors();
    var key = Key.OfAttention.of(true, tensors, step.scores(), true);
    return prepare(
        key,
        graph -> AttentionGraphs.backward(graph, step),
        EngineRule.ATTENTION,
        tensors,
        locations);
  }

  /**
   * {@return the step; empty if cuDNN refuses it, or has only kernels whose results change from run
   * to run or keep fewer digits than its types}
   *
   * @param locations pointers to tensors on the GPU, where they are when the step is called
   */
  public Optional<Prepared> prepare(Convolution step, Function<TensorRef, Pointer> locations) {
    var tensors = step.tensors();
    return prepare(
        new Key.OfConvolution(step.pass(), Key.typesOf(tensors), step.windows()),
        graph -> ConvolutionGraph.build(graph, step),
        EngineRule.convolution(step.small().type().dtype()),
        tensors,
        locations);
  }

  private Optional<Prepared> prepare(
      Key key,
      Function<OperationGraph, Built> build,
      EngineRule engines,
      ImmutableList<TensorRef> tensors,
      Function<TensorRef, Pointer> locations) {
    var known = plans.get(key);
    var planned = known == null ? plan(build, engines) : known;
    plans.put(key, planned);
    return planned
        .filter(found -> found.bytes() <= engines.workspaceBytes())
        .map(
            found -> {
              var operands = tensors.stream().map(locations).toList();
              return new Prepared(found.bytes(), workspace -> execute(found, operands, workspace));
            });
  }

  private Optional<Planned> plan(Function<OperationGraph, Built> build, EngineRule engines) {
    var graph = new OperationGraph();
    graphs.add(graph);
    try {
      var built = build.apply(graph);
      return Optional.of(new Planned(built, graph.plan(handle, engines)));
    } catch (CudnnException e) {
      if (e.isRefusal()) {
        return Optional.empty();
      }
      throw e;
    }
  }

  private void execute(Planned planned, List<Pointer> tensors, long workspace) {
    var all = new ArrayList<>(tensors);
    long next = workspace;
    for (long bytes : planned.built().scratch()) {
      all.add(pointers.apply(next));
      next += aligned(bytes);
    }
    planned.plan().execute(planned.built().uids(), all, pointers.apply(next));
  }

  private static long aligned(long bytes) {
    return Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT;
  }

  @Override
  public void close() {
    graphs.forEach(OperationGraph::close);
    HANDLES.giveBack(device, handle);
  }
}
