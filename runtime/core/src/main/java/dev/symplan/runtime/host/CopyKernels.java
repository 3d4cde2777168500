package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.op.OpCall;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.List;

/** Ops that copy a tensor, whole or into a part, or join several. */
final class CopyKernels {
  private CopyKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var name : List.of("aten::reshape", "aten::reshape_as", "aten::flatten.using_ints")) {
      table.put(
          name,
          call ->
              call.result()
                  .copyFrom(
                      call.tensor("self").contiguous().as(call.result().type().contiguous())));
    }
    for (var name :
        List.of("symplan::offload", "symplan::offload_", "symplan::reload", "symplan::fetch")) {
      table.put(name, call -> call.result().copyFrom(call.tensor("self")));
    }
    // Copies are done when they have begun; the sessions have events in place of this.
    table.put("symplan::await_copy", _ -> {});
    table.put("aten::copy_", call -> fill(call.tensor("self"), call.tensor("src")));
    for (var name : List.of("aten::cat", "aten::concat")) {
      table.put(name, CopyKernels::join);
    }
    table.put("aten::stack", CopyKernels::stack);
    table.put("aten::slice_scatter", CopyKernels::sliceScatter);
    table.put("aten::slice_backward", CopyKernels::sliceBackward);
    table.put("aten::select_scatter", CopyKernels::selectScatter);
    table.put("aten::select_backward", CopyKernels::selectBackward);
    table.put("aten::diagonal_scatter", CopyKernels::diagonalScatter);
    table.put("aten::as_strided_scatter", CopyKernels::stridedScatter);
    return table.buildOrThrow();
  }

  /** Copies a tensor, broadcast. */
  private static void fill(HostTensor target, HostTensor source) {
    target.copyFrom(Views.expand(source, target.type().sizes()));
  }

  private static int dim(HostCall call) {
    return OpCall.wrapDim(call.integer("dim"), call.result().type().rank(), "dim");
  }

  private static void join(HostCall call) {
    var result = call.result();
    long start = 0;
    for (var tensor : call.tensors("tensors")) {
      // PyTorch lets tensors of shape [0] pass, whatever the others' shapes and the dimension are.
      if (tensor.type().numel() > 0) {
        int dim = dim(call);
        long size = tensor.type().size(dim);
        Views.narrow(result, dim, start, size).copyFrom(tensor);
        start += size;
      }
    }
  }

  private static void stack(HostCall call) {
    int dim = dim(call);
    long index = 0;
    for (var tensor : call.tensors("tensors")) {
      Views.select(call.result(), dim, index++).copyFrom(tensor);
    }
  }

  private static long clamp(long index, long size) {
    return Math.clamp(index < 0 ? index + size : index, 0, size);
  }

  private static HostTensor slice(HostCall call) {
    int dim = dim(call);
    long size = call.result().type().size(dim);
    long start = call.has("start") ? clamp(call.integer("start"), size) : 0;
    long end = call.has("end") ? clamp(call.integer("end"), size) : size;
    long step = call.integer("step");
    long count = Math.max(0, Math.ceilDiv(end - start, step));
    return Views.slice(call.result(), dim, count == 0 ? 0 : start, count, step);
  }

  private static void sliceScatter(HostCall call) {
    call.result().copyFrom(call.tensor("self"));
    fill(slice(call), call.tensor("src"));
  }

  private static void sliceBackward(HostCall call) {
    CreationKernels.fill(call.result(), 0);
    slice(call).copyFrom(call.tensor("grad_output"));
  }

  private static HostTensor selected(HostCall call) {
    int dim = dim(call);
    long size = call.result().type().size(dim);
    return Views.select(call.result(), dim, IndexedElements.wrap(call.integer("index"), size, dim));
  }

  private static void selectScatter(HostCall call) {
    call.result().copyFrom(call.tensor("self"));
    fill(selected(call), call.tensor("src"));
  }

  private static void selectBackward(HostCall call) {
    CreationKernels.fill(call.result(), 0);
    selected(call).copyFrom(call.tensor("grad_output"));
  }

  private static void diagonalScatter(HostCall call) {
    var result = call.result();
    result.copyFrom(call.tensor("self"));
    int rank = result.type().rank();
    var diagonal =
        ArrangementKernels.diagonal(
            result,
            call.integer("offset"),
            OpCall.wrapDim(call.integer("dim1"), rank, "dim1"),
            OpCall.wrapDim(call.integer("dim2"), rank, "dim2"));
    diagonal.copyFrom(call.tensor("src"));
  }

  private static void stridedScatter(HostCall call) {
    var result = call.result();
    result.copyFrom(call.tensor("self"));
    Views.strided(
            result,
            call.integers("size").asList(),
            call.integers("stride").asList(),
            call.has("storage_offset") ? call.integer("storage_offset") : 0)
        .copyFrom(call.tensor("src"));
  }
}
