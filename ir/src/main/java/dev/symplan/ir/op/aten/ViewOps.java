package dev.symplan.ir.op.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import java.util.stream.Stream;

/** Ops whose results are other views of an argument's storage. */
final class ViewOps {
  private static final long MAX_PARTS = 100_000;

  private ViewOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
        view("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)", ViewOps::viewed),
        view("aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor", ViewOps::viewed),
        OpSpec.of("aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)")
            .rule(InferRule.single(ViewOps::reshaped)),
        view("aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)", ViewOps::permuted),
        view(
            "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
            ViewOps::transposed),
        view("aten::t(Tensor(a) self) -> Tensor(a)", ViewOps::matrixTransposed),
        view(
            "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
            ViewOps::expanded),
        view(
            "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt?"
                + " storage_offset=None) -> Tensor(a)",
            ViewOps::strided),
        view(
            "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None,"
                + " SymInt step=1) -> Tensor(a)",
            ViewOps::sliced),
        view(
            "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
            ViewOps::selected),
        view("aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", ViewOps::unsqueezed),
        view(
            "aten::squeeze(Tensor(a) self) -> Tensor(a)",
            (call, self) -> squeezed(self, allDims(self))),
        view(
            "aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
            (call, self) ->
                squeezed(self, ImmutableLongArray.of(call.dim("dim", self.tensor().rank())))),
        view(
            "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
            (call, self) -> squeezed(self, call.integers("dim"))),
        whole("aten::alias(Tensor(a) self) -> Tensor(a)"),
        whole("aten::detach(Tensor(a) self) -> Tensor(a)"),
        whole("aten::lift_fresh(Tensor(a) self) -> Tensor(a)"),
        many(
            "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) ->"
                + " Tensor(a)[]",
            ViewOps::split),
        many(
            "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) ->"
                + " Tensor(a)[]",
            ViewOps::splitWithSizes),
        many(
            "aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
            ViewOps::chunked),
        many("aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", ViewOps::unbound));
  }

  private static OpSpec view(String schema, BiFunction<OpCall, Value, OpResult> rule) {
    return OpSpec.of(schema).rule(InferRule.single(call -> rule.apply(call, call.value("self"))));
  }

  private static OpSpec many(String schema, BiFunction<OpCall, Value, List<OpResult>> rule) {
    return OpSpec.of(schema).rule(call -> rule.apply(call, call.value("self")));
  }

  private static OpSpec whole(String schema) {
    return view(
        schema,
        (call, self) -> OpResult.view(self, self.tensor().sizes(), self.tensor().strides(), 0));
  }

  private static OpResult viewed(OpCall call, Value self) {
    var type = self.tensor();
    var sizes = Types.inferSize(type.numel(), call.integers("size"));
    return Types.viewStrides(type, sizes)
        .map(strides -> OpResult.view(self, sizes, strides, 0))
        .orElseThrow(
            () ->
                new OpTypeException(
                    "%s cannot be seen as %s without a copy".formatted(type, Types.text(sizes)),
                    "use aten::reshape, which copies where it must"));
  }

  private static OpResult reshaped(OpCall call) {
    var self = call.value("self");
    var type = self.tensor();
    var sizes = Types.inferSize(type.numel(), call.integers("shape"));
    return Types.viewStrides(type, sizes)
        .map(strides -> OpResult.view(self, sizes, strides, 0))
        .orElseGet(() -> OpResult.fresh(type.dtype(), sizes));
  }

  private static OpResult permuted(OpCall call, Value self) {
    var dims = call.integers("dims");
    int rank = self.tensor().rank();
    if (dims.length() != rank) {
      throw new OpTypeException(
          "%d dims for a tensor of %d dimensions".formatted(dims.length(), rank));
    }
    var order = new int[rank];
    var seen = new boolean[rank];
    for (int i = 0; i < rank; i++) {
      order[i] = OpCall.wrapDim(dims.get(i), rank, "dims");
      if (seen[order[i]]) {
        throw new OpTypeException("dims has %d twice".formatted(order[i]));
      }
      seen[order[i]] = true;
    }
    return ordered(self, order);
  }

  private static OpResult ordered(Value self, int[] order) {
    var sizes = ImmutableLongArray.builder(order.length);
    var strides = ImmutableLongArray.builder(order.length);
    for (int dim : order) {
      sizes.add(self.tensor().size(dim));
      strides.add(self.tensor().stride(dim));
    }
    return OpResult.view(self, sizes.build(), strides.build(), 0);
  }

  private static OpResult transposed(OpCall call, Value self) {
    int rank = self.tensor().rank();
    return swapped(self, call.dim("dim0", rank), call.dim("dim1", rank));
  }

  private static OpResult matrixTransposed(OpCall call, Value self) {
    int rank = self.tensor().rank();
    if (rank > 2) {
      throw new OpTypeException("t takes at most 2 dimensions, not " + rank);
    }
    return swapped(self, 0, Math.max(0, rank - 1));
  }

  private static OpResult swapped(Value self, int a, int b) {
    var order = new int[self.tensor().rank()];
    for (int i = 0; i < order.length; i++) {
      order[i] = i == a ? b : i == b ? a : i;
    }
    return ordered(self, order);
  }

  private static OpResult expanded(OpCall call, Value self) {
    var wanted = call.integers("size");
    var type = self.tensor();
    int added = wanted.length() - type.rank();
    if (added < 0) {
      throw new OpTypeException(
          "%s cannot expand to fewer dimensions: %s".formatted(type, Types.text(wanted)));
    }
    var sizes = new long[wanted.length()];
    var strides = new long[wanted.length()];
    for (int i = 0; i < sizes.length; i++) {
      long old = i < added ? 1 : type.size(i - added);
      long size = wanted.get(i) == -1 && i >= added ? old : wanted.get(i);
      if (size < 0 || (old != 1 && old != size)) {
        throw new OpTypeException(
            "%s cannot expand to %s".formatted(type, Types.text(wanted)),
            "only dimensions of size 1 expand");
      }
      sizes[i] = size;
      strides[i] = i < added ? 0 : old == size ? type.stride(i - added) : 0;
    }
    return OpResult.view(
        self, ImmutableLongArray.copyOf(sizes), ImmutableLongArray.copyOf(strides), 0);
  }

  private static OpResult strided(OpCall call, Value self) {
    long offset = call.has("storage_offset") ? call.integer("storage_offset") : 0;
    return OpResult.view(self, call.integers("size"), call.integers("stride"), offset);
  }

  private static OpResult sliced(OpCall call, Value self) {
    var type = self.tensor();
    if (type.rank() == 0) {
      throw new OpTypeException("a scalar tensor cannot be sliced");
    }
    int dim = call.dim("dim", type.rank());
    long size = type.size(dim);
    long start = call.has("start") ? clamp(call.integer("start"), size) : 0;
    long end = call.has("end") ? clamp(call.integer("end"), size) : size;
    long step = call.integer("step");
    if (step <= 0) {
      throw new OpTypeException("step is %d, but must be positive".formatted(step));
    }
    long length = end <= start ? 0 : (end - start + step - 1) / step;
    return cut(self, dim, length, type.stride(dim) * step, start * type.stride(dim));
  }

  private static long clamp(long index, long size) {
    return Math.clamp(index < 0 ? index + size : index, 0, size);
  }

  private static OpResult cut(Value self, int dim, long size, long stride, long offset) {
    var sizes = self.tensor().sizes().toArray();
    var strides = self.tensor().strides().toArray();
    sizes[dim] = size;
    strides[dim] = stride;
    return OpResult.view(
        self, ImmutableLongArray.copyOf(sizes), ImmutableLongArray.copyOf(strides), offset);
  }

  private static OpResult selected(OpCall call, Value self) {
    int dim = call.dim("dim", self.tensor().rank());
    return at(self, dim, call.integer("index"));
  }

  private static OpResult at(Value self, int dim, long index) {
    var type = self.tensor();
    if (type.rank() == 0) {
      throw new OpTypeException("a scalar tensor has nothing to select");
    }
    long size = type.size(dim);
    if (index < -size || index >= size) {
      throw new OpTypeException(
          "index %d is out of range for dimension %d of size %d".formatted(index, dim, size));
    }
    long offset = (index < 0 ? index + size : index) * type.stride(dim);
    return OpResult.view(self, without(type.sizes(), dim), without(type.strides(), dim), offset);
  }

  private static ImmutableLongArray without(ImmutableLongArray list, int dim) {
    var rest = ImmutableLongArray.builder(list.length());
    for (int i = 0; i < list.length(); i++) {
      if (i != dim) {
        rest.add(list.get(i));
      }
    }
    return rest.build();
  }

  private static OpResult unsqueezed(OpCall call, Value self) {
    var type = self.tensor();
    int dim = call.dim("dim", type.rank() + 1);
    var sizes = ImmutableLongArray.builder(type.rank() + 1);
    var strides = ImmutableLongArray.builder(type.rank() + 1);
    for (int i = 0; i <= type.rank(); i++) {
      if (i == dim) {
        sizes.add(1);
        strides.add(i < type.rank() ? type.size(i) * type.stride(i) : 1);
      }
      if (i < type.rank()) {
        sizes.add(type.size(i));
        strides.add(type.stride(i));
      }
    }
    return OpResult.view(self, sizes.build(), strides.build(), 0);
  }

  private static ImmutableLongArray allDims(Value self) {
    var dims = ImmutableLongArray.builder(self.tensor().rank());
    for (int i = 0; i < self.tensor().rank(); i++) {
      dims.add(i);
    }
    return dims.build();
  }

  private static OpResult squeezed(Value self, ImmutableLongArray dims) {
    var type = self.tensor();
    var drop = new boolean[type.rank()];
    for (long dim : dims.asList()) {
      int index = OpCall.wrapDim(dim, type.rank(), "dim");
      if (index < drop.length) {
        drop[index] = type.size(index) == 1;
      }
    }
    var sizes = ImmutableLongArray.builder(type.rank());
    var strides = ImmutableLongArray.builder(type.rank());
    for (int i = 0; i < drop.length; i++) {
      if (!drop[i]) {
        sizes.add(type.size(i));
        strides.add(type.stride(i));
      }
    }
    return OpResult.view(self, sizes.build(), strides.build(), 0);
  }

  private static List<OpResult> split(OpCall call, Value self) {
    long size = call.integer("split_size");
    int dim = call.dim("dim", self.tensor().rank());
    long total = sizeAt(self.tensor(), dim);
    if (size < 0 || (size == 0 && total != 0)) {
      throw new OpTypeException("split_size is %d".formatted(size));
    }
    return parts(self, dim, equalParts(total, size));
  }

  private static ImmutableLongArray equalParts(long total, long size) {
    checkCount(size == 0 ? 0 : total / size);
    var parts = ImmutableLongArray.builder();
    long left = total;
    do {
      long part = Math.min(size, left);
      parts.add(part);
      left -= part;
    } while (left > 0);
    return parts.build();
  }

  private static void checkCount(long count) {
    if (count > MAX_PARTS) {
      throw new OpTypeException(
          "%d parts are more than any program has; the limit is %d".formatted(count, MAX_PARTS));
    }
  }

  private static List<OpResult> chunked(OpCall call, Value self) {
    long chunks = call.integer("chunks");
    int dim = call.dim("dim", self.tensor().rank());
    long total = sizeAt(self.tensor(), dim);
    if (chunks <= 0) {
      throw new OpTypeException("chunks is %d, but must be positive".formatted(chunks));
    }
    long size = Math.max(1, Math.ceilDiv(total, chunks));
    return parts(self, dim, equalParts(total, size));
  }

  private static List<OpResult> splitWithSizes(OpCall call, Value self) {
    int dim = call.dim("dim", self.tensor().rank());
    return parts(self, dim, call.integers("split_sizes"));
  }

  private static long sizeAt(TensorType type, int dim) {
    if (type.rank() == 0) {
      throw new OpTypeException("a scalar tensor cannot be split");
    }
    return type.size(dim);
  }

  private static List<OpResult> parts(Value self, int dim, ImmutableLongArray sizes) {
    long total = sizeAt(self.tensor(), dim);
    long sum = sizes.stream().sum();
    if (sum != total) {
      throw new OpTypeException(
          "split sizes %s add up to %d, but dimension %d has %d"
              .formatted(Types.text(sizes), sum, dim, total));
    }
    long stride = self.tensor().stride(dim);
    var results = new ArrayList<OpResult>();
    long start = 0;
    for (long size : sizes.asList()) {
      results.add(cut(self, dim, size, stride, start * stride));
      start += size;
    }
    return results;
  }

  private static List<OpResult> unbound(OpCall call, Value self) {
    int dim = call.dim("dim", self.tensor().rank());
    long count = sizeAt(self.tensor(), dim);
    checkCount(count);
    var results = new ArrayList<OpResult>();
    for (long i = 0; i < count; i++) {
      results.add(at(self, dim, i));
    }
    return results;
  }
}
