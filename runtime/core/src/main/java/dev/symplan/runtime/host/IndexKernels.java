package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.HashMap;
import java.util.List;
import java.util.Optional;

/** Ops that read or write the elements that index tensors name, and embeddings. */
final class IndexKernels {
  private IndexKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var name : List.of("aten::index.Tensor", "aten::_unsafe_index.Tensor")) {
      table.put(
          name,
          call ->
              new IndexedElements(call.tensor("self"), call.optionalTensors("indices"))
                  .copyTo(call.result()));
    }
    for (var name : List.of("aten::index_put", "aten::_unsafe_index_put")) {
      table.put(
          name,
          call -> {
            call.result().copyFrom(call.tensor("self"));
            put(call, call.result());
          });
    }
    for (var name : List.of("aten::index_put_", "prims::_unsafe_index_put_")) {
      table.put(name, call -> put(call, call.tensor("self")));
    }
    table.put("aten::embedding", IndexKernels::embedding);
    table.put("aten::embedding_dense_backward", IndexKernels::embeddingBackward);
    table.put("aten::one_hot", IndexKernels::oneHot);
    table.put("aten::index_select", IndexKernels::select);
    table.put("aten::take", IndexKernels::take);
    table.put("aten::index_add", IndexKernels::addAt);
    table.put("aten::index_copy", IndexKernels::copyAt);
    for (var overload : List.of("int_Scalar", "int_Tensor")) {
      table.put("aten::index_fill." + overload, IndexKernels::fillAt);
    }
    return table.buildOrThrow();
  }

  private static void put(HostCall call, HostTensor target) {
    var indices = IndexedElements.withoutMasks(call.optionalTensors("indices"));
    if (call.bool("accumulate")) {
      var sum = IndexedElements.sumOf(target);
      var elements = new IndexedElements(sum, indices);
      elements.add(values(call, elements));
      if (sum != target) {
        target.copyFrom(sum);
      }
    } else {
      var elements = new IndexedElements(target, indices);
      elements.copyFrom(values(call, elements));
    }
  }

  /** How many elements a mask names is known only now. */
  private static HostTensor values(HostCall call, IndexedElements elements) {
    var values = call.tensor("values");
    var sizes = elements.sizes();
    int shift = sizes.length() - values.type().rank();
    for (int i = 0; i < values.type().rank(); i++) {
      if (i + shift < 0
          || (values.type().size(i) != 1 && values.type().size(i) != sizes.get(i + shift))) {
        throw new HostKernelException(
            "values %s do not fit the indexed elements, whose shape is %s"
                .formatted(values.type(), sizes));
      }
    }
    return Views.expand(values, sizes);
  }

  private static long[] indices(HostTensor tensor, long size, int dim) {
    var flat = Views.flat(tensor);
    var indices = new long[Math.toIntExact(flat.type().numel())];
    Elements.load(flat.memory(), 0, flat.dtype().bytes(), flat.dtype(), indices, indices.length);
    for (long index : indices) {
      IndexedElements.check(index, size, dim);
    }
    return indices;
  }

  private static void embedding(HostCall call) {
    var weight = call.tensor("weight");
    var index = call.tensor("indices");
    indices(index, weight.type().size(0), 0);
    new IndexedElements(weight, List.of(Optional.of(index))).copyTo(call.result());
  }

  private static void embeddingBackward(HostCall call) {
    var grad = call.tensor("grad_output");
    long width = grad.type().size(grad.type().rank() - 1);
    var indices = indices(call.tensor("indices"), call.integer("num_weights"), 0);
    var rows = Views.reshaped(grad, indices.length, width);
    var dtype = grad.dtype() == DType.F64 ? DType.F64 : DType.F32;
    var sum = HostTensor.allocate(call.result().type().contiguous().withDType(dtype));
    long padding = call.integer("padding_idx");
    boolean byFrequency = call.bool("scale_grad_by_freq");
    var counts = new HashMap<Long, Integer>();
    for (long index : indices) {
      counts.merge(index, 1, Integer::sum);
    }
    for (int i = 0; i < indices.length; i++) {
      if (indices[i] != padding) {
        double scale = byFrequency ? 1.0 / counts.getOrDefault(indices[i], 1) : 1;
        var target = Views.select(sum, 0, indices[i]);
        Pointwise.apply(
            target, Pointwise.binary((a, b) -> a + scale * b), target, Views.select(rows, 0, i));
      }
    }
    call.result().copyFrom(sum);
  }

  private static void oneHot(HostCall call) {
    var indices = indices(call.tensor("self"), call.integer("num_classes"), 0);
    var result = HostTensor.allocate(call.result().type().contiguous());
    var rows = Views.reshaped(result, indices.length, call.integer("num_classes"));
    for (int i = 0; i < indices.length; i++) {
      rows.setLong(1, i, indices[i]);
    }
    call.result().copyFrom(result);
  }

  private static int dim(HostCall call) {
    return OpCall.wrapDim(call.integer("dim"), call.tensor("self").type().rank(), "dim");
  }

  private static void select(HostCall call) {
    var self = Views.atLeastVector(call.tensor("self"));
    var result = Views.atLeastVector(call.result());
    int dim = dim(call);
    var indices = indices(call.tensor("index"), self.type().size(dim), dim);
    for (int i = 0; i < indices.length; i++) {
      Views.select(result, dim, i).copyFrom(Views.select(self, dim, indices[i]));
    }
  }

  private static void take(HostCall call) {
    var flat = Views.flat(call.tensor("self"));
    new IndexedElements(flat, List.of(Optional.of(call.tensor("index")))).copyTo(call.result());
  }

  private interface Slice {
    void run(HostTensor target, int index);
  }

  /** Copies self, then changes its slices at the indices. */
  private static void forEachSlice(HostCall call, HostTensor copy, Slice slice) {
    var target = Views.atLeastVector(copy);
    target.copyFrom(Views.atLeastVector(call.tensor("self")));
    int dim = dim(call);
    var indices = indices(call.tensor("index"), target.type().size(dim), dim);
    for (int i = 0; i < indices.length; i++) {
      slice.run(Views.select(target, dim, indices[i]), i);
    }
  }

  private static void addAt(HostCall call) {
    var source = Views.atLeastVector(call.tensor("source"));
    int dim = dim(call);
    double alpha = call.number("alpha");
    var result = call.result();
    var dtype = result.dtype();
    boolean narrow = dtype.isFloat() && dtype.bytes() < 4;
    var sum =
        narrow ? HostTensor.allocate(result.type().contiguous().withDType(DType.F32)) : result;
    forEachSlice(
        call,
        sum,
        (target, i) -> {
          var summand = Views.select(source, dim, i);
          if (dtype.isFloat()) {
            Pointwise.apply(target, Pointwise.binary((a, b) -> a + alpha * b), target, summand);
          } else {
            addLongs(target, summand, dtype == DType.BOOL && alpha != 0 ? 1 : (long) alpha);
          }
        });
    if (narrow) {
      result.copyFrom(sum);
    }
  }

  private static void addLongs(HostTensor target, HostTensor summand, long alpha) {
    var a = target.contiguous();
    var b = Views.flat(summand);
    var sum = HostTensor.allocate(TensorType.contiguous(target.dtype(), b.type().numel()));
    var flat = Views.flat(a);
    for (long i = 0; i < b.type().numel(); i++) {
      sum.setLong(flat.getLong(i) + alpha * b.getLong(i), i);
    }
    target.copyFrom(sum.as(target.type().contiguous()));
  }

  private static void copyAt(HostCall call) {
    var source = Views.atLeastVector(call.tensor("source"));
    int dim = dim(call);
    forEachSlice(call, call.result(), (target, i) -> target.copyFrom(Views.select(source, dim, i)));
  }

  /** Here, unlike in its relatives, negative indices count from the end. */
  private static void fillAt(HostCall call) {
    var value = CreationKernels.scalar(call, "value", call.result().dtype());
    var result = Views.atLeastVector(call.result());
    result.copyFrom(Views.atLeastVector(call.tensor("self")));
    int dim = dim(call);
    var index = Views.flat(call.tensor("index"));
    for (long i = 0; i < index.type().numel(); i++) {
      long at = IndexedElements.wrap(index.getLong(i), result.type().size(dim), dim);
      var slice = Views.select(result, dim, at);
      slice.copyFrom(Views.expand(value, slice.type().sizes()));
    }
  }
}
