package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.op.OpCall;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** Ops that repeat, turn, pad or cut out elements. */
final class ArrangementKernels {
  private ArrangementKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    return ImmutableMap.<String, HostKernel>builder()
        .put("aten::repeat", ArrangementKernels::repeat)
        .put("aten::tile", ArrangementKernels::repeat)
        .put("aten::repeat_interleave.self_int", ArrangementKernels::interleave)
        .put("aten::repeat_interleave.self_Tensor", ArrangementKernels::interleaveByTensor)
        .put("aten::flip", call -> flip(call, call.tensor("self")))
        .put("prims::rev", call -> flip(call, call.tensor("a")))
        .put("aten::roll", ArrangementKernels::roll)
        .put("aten::constant_pad_nd", ArrangementKernels::pad)
        .put("aten::pad", ArrangementKernels::pad)
        .put("aten::tril", call -> triangle(call, true))
        .put("aten::triu", call -> triangle(call, false))
        .put("aten::diag_embed", ArrangementKernels::embedDiagonal)
        .buildOrThrow();
  }

  private static void flip(HostCall call, HostTensor operand) {
    flip(operand, call.result(), named(call.integers("dims"), operand.type().rank()), 0);
  }

  /** Each dimension of the result is a pair: the repetition, and the index in the operand. */
  private static void repeat(HostCall call) {
    var self = call.tensor("self");
    var result = call.result();
    int added = result.type().rank() - self.type().rank();
    if (result.type().numel() == 0) {
      return;
    }
    for (int i = result.type().rank() - 1; i >= 0; i--) {
      long size = i < added ? 1 : self.type().size(i - added);
      result = Views.split(result, i, List.of(result.type().size(i) / size, size));
    }
    for (int i = self.type().rank() - 1; i >= 0; i--) {
      self = Views.unsqueeze(self, i);
    }
    for (int i = 0; i < added; i++) {
      self = Views.unsqueeze(Views.unsqueeze(self, 0), 0);
    }
    result.copyFrom(Views.expand(self, result.type().sizes()));
  }

  private static void interleave(HostCall call) {
    long repeats = call.integer("repeats");
    if (call.result().type().numel() == 0) {
      return;
    }
    boolean flat = !call.has("dim");
    var self = flat ? Views.flat(call.tensor("self")) : Views.atLeastVector(call.tensor("self"));
    int dim = flat ? 0 : OpCall.wrapDim(call.integer("dim"), self.type().rank(), "dim");
    var result = Views.split(call.result(), dim, List.of(self.type().size(dim), repeats));
    result.copyFrom(Views.expand(Views.unsqueeze(self, dim + 1), result.type().sizes()));
  }

  private static void interleaveByTensor(HostCall call) {
    boolean flat = !call.has("dim");
    var self = flat ? Views.flat(call.tensor("self")) : Views.atLeastVector(call.tensor("self"));
    int dim = flat ? 0 : OpCall.wrapDim(call.integer("dim"), self.type().rank(), "dim");
    var repeats = Views.flat(call.tensor("repeats"));
    long total = call.result().type().size(dim);
    long next = 0;
    for (long i = 0; i < self.type().size(dim); i++) {
      long count = repeats.getLong(repeats.type().numel() == 1 ? 0 : i);
      if (count < 0 || next + count > total) {
        throw new HostKernelException(
            "%s repetitions of element %s do not fit output_size %s".formatted(count, i, total));
      }
      for (long j = 0; j < count; j++) {
        Views.select(call.result(), dim, next++).copyFrom(Views.select(self, dim, i));
      }
    }
    if (next != total) {
      throw new HostKernelException(
          "the repetitions are %s, but output_size is %s".formatted(next, total));
    }
  }

  private static boolean[] named(ImmutableLongArray dims, int rank) {
    var named = new boolean[Math.max(1, rank)];
    for (long dim : dims.asList()) {
      named[OpCall.wrapDim(dim, rank, "dims")] = true;
    }
    return named;
  }

  private static void flip(HostTensor from, HostTensor to, boolean[] dims, int dim) {
    int next = dim;
    while (next < from.type().rank() && !dims[next]) {
      next++;
    }
    if (next == from.type().rank()) {
      to.copyFrom(from);
      return;
    }
    long size = from.type().size(next);
    for (long i = 0; i < size; i++) {
      flip(Views.narrow(from, next, size - 1 - i, 1), Views.narrow(to, next, i, 1), dims, next + 1);
    }
  }

  private static void roll(HostCall call) {
    var self = call.tensor("self");
    var shifts = call.integers("shifts");
    var dims = call.integers("dims");
    if (self.type().numel() == 0) {
      return;
    }
    if (dims.isEmpty()) {
      // Without dims, the tensor rolls as one row.
      var rolled = Views.flat(HostTensor.allocate(self.type().contiguous()));
      roll(Views.flat(self), rolled, shifts, List.of(0), 0);
      call.result().copyFrom(rolled.as(self.type().contiguous()));
      return;
    }
    var sum = new long[Math.max(1, self.type().rank())];
    for (int i = 0; i < dims.length(); i++) {
      sum[OpCall.wrapDim(dims.get(i), self.type().rank(), "dims")] += shifts.get(i);
    }
    var each = IntStream.range(0, sum.length).boxed().toList();
    roll(
        Views.atLeastVector(self),
        Views.atLeastVector(call.result()),
        ImmutableLongArray.copyOf(sum),
        each,
        0);
  }

  private static void roll(
      HostTensor from, HostTensor to, ImmutableLongArray shifts, List<Integer> dims, int next) {
    if (next == dims.size()) {
      to.copyFrom(from);
      return;
    }
    int dim = dims.get(next);
    long size = from.type().size(dim);
    long shift = Math.floorMod(shifts.get(next), size);
    roll(
        Views.narrow(from, dim, 0, size - shift),
        Views.narrow(to, dim, shift, size - shift),
        shifts,
        dims,
        next + 1);
    if (shift > 0) {
      roll(
          Views.narrow(from, dim, size - shift, shift),
          Views.narrow(to, dim, 0, shift),
          shifts,
          dims,
          next + 1);
    }
  }

  /** {@code pad} counts from the last dimension: before, after, before, after … */
  private static void pad(HostCall call) {
    if (call.hasParam("mode") && !call.string("mode").equals("constant")) {
      ResampleKernels.pad(call);
      return;
    }
    var pad = call.integers("pad");
    var from = call.tensor("self");
    var to = call.result();
    CreationKernels.fill(to, call.has("value") ? call.number("value") : 0);
    for (int i = 0; i < pad.length() / 2; i++) {
      int dim = from.type().rank() - 1 - i;
      long before = pad.get(2 * i);
      long after = pad.get(2 * i + 1);
      long kept = from.type().size(dim) + Math.min(before, 0) + Math.min(after, 0);
      if (kept <= 0) {
        return;
      }
      from = Views.narrow(from, dim, Math.max(0, -before), kept);
      to = Views.narrow(to, dim, Math.max(0, before), kept);
    }
    to.copyFrom(from);
  }

  private static void triangle(HostCall call, boolean lower) {
    var self = call.tensor("self");
    var result = call.result();
    long diagonal = call.integer("diagonal");
    int rank = self.type().rank();
    long rows = self.type().size(rank - 2);
    long columns = self.type().size(rank - 1);
    result.copyFrom(self);
    for (long row = 0; row < rows; row++) {
      long edge = Math.clamp(row + diagonal + (lower ? 1 : 0), 0, columns);
      long start = lower ? edge : 0;
      long size = lower ? columns - edge : edge;
      if (size > 0) {
        CreationKernels.fill(
            Views.narrow(Views.narrow(result, rank - 2, row, 1), rank - 1, start, size), 0);
      }
    }
  }

  private static void embedDiagonal(HostCall call) {
    var result = call.result();
    int rank = result.type().rank();
    CreationKernels.fill(result, 0);
    diagonal(
            result,
            call.integer("offset"),
            OpCall.wrapDim(call.integer("dim1"), rank, "dim1"),
            OpCall.wrapDim(call.integer("dim2"), rank, "dim2"))
        .copyFrom(call.tensor("self"));
  }

  /** {@return the diagonal of two dimensions, as a last dimension instead of them} */
  static HostTensor diagonal(HostTensor tensor, long offset, int dim1, int dim2) {
    var type = tensor.type();
    long length =
        Math.max(
            0,
            Math.min(type.size(dim1) + Math.min(0, offset), type.size(dim2) - Math.max(0, offset)));
    length = Math.min(length, Math.min(type.size(dim1), type.size(dim2)));
    long start =
        length == 0 ? 0 : offset >= 0 ? offset * type.stride(dim2) : -offset * type.stride(dim1);
    var sizes = new ArrayList<Long>();
    var strides = new ArrayList<Long>();
    for (int i = 0; i < type.rank(); i++) {
      if (i != dim1 && i != dim2) {
        sizes.add(type.size(i));
        strides.add(type.stride(i));
      }
    }
    sizes.add(length);
    strides.add(type.stride(dim1) + type.stride(dim2));
    return Views.strided(tensor, sizes, strides, start);
  }
}
