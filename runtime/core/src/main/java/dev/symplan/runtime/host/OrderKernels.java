package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.function.IntPredicate;

/** Sorting and searching along a dimension. Sorting is stable; NaN comes after all numbers. */
final class OrderKernels {
  private OrderKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var name : List.of("aten::sort", "aten::sort.stable")) {
      table.put(
          name, call -> take(call, call.bool("descending"), 0, call.result(0), call.result(1)));
    }
    for (var name : List.of("aten::argsort", "aten::argsort.stable")) {
      table.put(
          name,
          call ->
              take(
                  call,
                  call.bool("descending"),
                  0,
                  HostTensor.allocate(call.tensor("self").type().contiguous()),
                  call.result()));
    }
    table.put(
        "aten::topk", call -> take(call, call.bool("largest"), 0, call.result(0), call.result(1)));
    table.put("aten::median.dim", OrderKernels::median);
    table.put("aten::bucketize.Tensor", call -> search(call, call.tensor("boundaries")));
    table.put("aten::searchsorted.Tensor", call -> search(call, call.tensor("sorted_sequence")));
    table.put("aten::histc", OrderKernels::histogram);
    return table.buildOrThrow();
  }

  private static int dim(HostCall call) {
    return OpCall.wrapDim(call.integer("dim"), call.tensor("self").type().rank(), "dim");
  }

  /** {@return the positions of the values in ascending or descending order} */
  private static Integer[] order(AlongDim.Row row, boolean floats, boolean descending) {
    var order = new Integer[row.size()];
    Arrays.setAll(order, i -> i);
    Comparator<Integer> comparator;
    if (floats) {
      var values = row.load();
      for (int i = 0; i < values.length; i++) {
        // Comparing by Double.compare would tell the zeros apart.
        values[i] += 0.0;
      }
      comparator = Comparator.comparingDouble(i -> values[i]);
    } else {
      var values = row.loadOrdered();
      comparator = Comparator.comparingLong(i -> values[i]);
    }
    Arrays.sort(order, descending ? comparator.reversed() : comparator);
    return order;
  }

  /** Writes as many elements as the results have, in order, from {@code skip} on. */
  private static void take(
      HostCall call, boolean descending, int skip, HostTensor values, HostTensor indices) {
    var self = call.tensor("self");
    boolean floats = self.dtype().isFloat();
    AlongDim.forEach(
        dim(call),
        List.of(self, values, indices),
        rows -> {
          var order = order(rows[0], floats, descending);
          var at = new long[rows[2].size()];
          for (int i = 0; i < at.length; i++) {
            at[i] = order[skip + i];
            rows[1].copy(i, rows[0], at[i]);
          }
          rows[2].store(at);
        });
  }

  /** The lower of the two in the middle; NaN if there is one. */
  private static void median(HostCall call) {
    var self = call.tensor("self");
    int dim = dim(call);
    boolean keepdim = call.bool("keepdim") || self.type().rank() == 0;
    var results = new ArrayList<HostTensor>();
    for (int i = 0; i < 2; i++) {
      results.add(keepdim ? call.result(i) : Views.unsqueeze(call.result(i), dim));
    }
    boolean floats = self.dtype().isFloat();
    AlongDim.forEach(
        dim,
        List.of(self, results.get(0), results.get(1)),
        rows -> {
          var order = order(rows[0], floats, false);
          int middle = order[(order.length - 1) / 2];
          if (floats) {
            var values = rows[0].load();
            for (int i = values.length - 1; i >= 0; i--) {
              middle = Double.isNaN(values[i]) ? i : middle;
            }
          }
          rows[1].copy(0, rows[0], middle);
          rows[2].store(new long[] {middle});
        });
  }

  /** Where each value would go among sorted ones: before its equals, or after them. */
  private static void search(HostCall call, HostTensor sorted) {
    boolean right =
        call.bool("right")
            || (call.hasParam("side") && call.has("side") && call.string("side").equals("right"));
    var self = call.tensor("self");
    var result = call.result();
    if (sorted.type().rank() == 1) {
      var flat = Views.flat(self);
      var found = HostTensor.allocate(flat.type().withDType(result.dtype()));
      search(List.of(sorted, flat, found), right, sorter(call));
      result.copyFrom(found.as(result.type().contiguous()));
    } else {
      search(List.of(sorted, self, result), right, sorter(call));
    }
  }

  private static List<HostTensor> sorter(HostCall call) {
    return call.hasParam("sorter") && call.has("sorter")
        ? List.of(call.tensor("sorter"))
        : List.of();
  }

  private static void search(List<HostTensor> operands, boolean right, List<HostTensor> sorter) {
    var tensors = new ArrayList<HostTensor>(operands);
    tensors.addAll(sorter);
    int dim = operands.getFirst().type().rank() - 1;
    var types = operands.stream().limit(2).map(HostTensor::dtype).toList();
    boolean floats = types.stream().anyMatch(DType::isFloat);
    long flip = types.contains(DType.U64) ? Long.MIN_VALUE : 0;
    AlongDim.forEach(
        dim,
        tensors,
        rows -> {
          var order = new int[rows[0].size()];
          Arrays.setAll(order, i -> i);
          if (!sorter.isEmpty()) {
            var positions = rows[3].loadLongs();
            Arrays.setAll(
                order, i -> (int) IndexedElements.check(positions[i], positions.length, dim));
          }
          var found = new long[rows[1].size()];
          if (floats) {
            var sorted = rows[0].load();
            var values = rows[1].load();
            Arrays.setAll(
                found, i -> position(order, at -> isBefore(sorted[at], values[i], right)));
          } else {
            var sorted = rows[0].loadLongs();
            var values = rows[1].loadLongs();
            Arrays.setAll(
                found,
                i -> position(order, at -> isBefore(sorted[at] ^ flip, values[i] ^ flip, right)));
          }
          rows[2].store(found);
        });
  }

  private static boolean isBefore(double sorted, double value, boolean right) {
    return right ? !(sorted > value) : !(sorted >= value || Double.isNaN(sorted));
  }

  private static boolean isBefore(long sorted, long value, boolean right) {
    return right ? sorted <= value : sorted < value;
  }

  /** {@return how many of the first ones are before a value} */
  private static int position(int[] order, IntPredicate before) {
    int low = 0;
    int high = order.length;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (before.test(order[middle])) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  private static void histogram(HostCall call) {
    var flat = Views.flat(call.tensor("self"));
    int bins = Math.toIntExact(call.integer("bins"));
    double low = call.number("min");
    double high = call.number("max");
    if (low == high && flat.type().numel() > 0) {
      low = Double.POSITIVE_INFINITY;
      high = Double.NEGATIVE_INFINITY;
      for (long i = 0; i < flat.type().numel(); i++) {
        low = Math.min(low, flat.get(i));
        high = Math.max(high, flat.get(i));
      }
    }
    if (low == high) {
      low -= 1;
      high += 1;
    }
    if (!Double.isFinite(low) || !Double.isFinite(high)) {
      throw new HostKernelException("the range [%s, %s] is not finite".formatted(low, high));
    }
    var counts = new double[bins];
    for (long i = 0; i < flat.type().numel(); i++) {
      double x = flat.get(i);
      if (x >= low && x <= high) {
        counts[Math.min(bins - 1, (int) ((x - low) * bins / (high - low)))]++;
      }
    }
    for (int i = 0; i < bins; i++) {
      call.result().set(counts[i], i);
    }
  }
}
