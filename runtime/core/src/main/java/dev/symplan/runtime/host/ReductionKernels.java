package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.op.OpCall;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Loops;
import java.util.ArrayList;
import java.util.List;
import java.util.function.DoubleBinaryOperator;

/**
 * Reductions over dimensions: one engine that walks the reduced elements of each result in
 * row-major order. Sums are kept in double, so that their rounding is that of the result only.
 */
final class ReductionKernels {

  /** What is kept while the elements of one result go by. */
  private interface Accumulator {
    void start();

    void add(double value, long index);

    /** Writes the results at {@code offset} elements from their first ones. */
    void finish(long[] resultIndex);
  }

  private ReductionKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var name : List.of("aten::sum", "aten::sum.dim_IntList")) {
      table.put(name, call -> fold(call, 0, Double::sum, false));
    }
    for (var name : List.of("aten::mean", "aten::mean.dim")) {
      table.put(name, call -> fold(call, 0, Double::sum, true));
    }
    table.put("aten::prod", call -> fold(call, 1, (a, b) -> a * b, false));
    for (var name : List.of("aten::amax", "aten::max")) {
      table.put(name, call -> fold(call, Double.NEGATIVE_INFINITY, ReductionKernels::max, false));
    }
    for (var name : List.of("aten::amin", "aten::min")) {
      table.put(name, call -> fold(call, Double.POSITIVE_INFINITY, ReductionKernels::min, false));
    }
    for (var name : List.of("aten::any", "aten::any.dim")) {
      table.put(name, call -> fold(call, 0, (a, b) -> a != 0 || b != 0 ? 1 : 0, false));
    }
    for (var name : List.of("aten::all", "aten::all.dim")) {
      table.put(name, call -> fold(call, 1, (a, b) -> a != 0 && b != 0 ? 1 : 0, false));
    }
    table.put("aten::max.dim", call -> best(call, true, 0, 1));
    table.put("aten::min.dim", call -> best(call, false, 0, 1));
    table.put("aten::argmax", call -> best(call, true, -1, 0));
    table.put("aten::argmin", call -> best(call, false, -1, 0));
    return table.buildOrThrow();
  }

  private static double max(double a, double b) {
    return Double.isNaN(a) || Double.isNaN(b) ? Double.NaN : Math.max(a, b);
  }

  private static double min(double a, double b) {
    return Double.isNaN(a) || Double.isNaN(b) ? Double.NaN : Math.min(a, b);
  }

  private static void fold(HostCall call, double first, DoubleBinaryOperator f, boolean mean) {
    var result = call.result();
    reduce(
        call,
        new Accumulator() {
          private double value;
          private long count;

          @Override
          public void start() {
            value = first;
            count = 0;
          }

          @Override
          public void add(double element, long index) {
            value = f.applyAsDouble(value, element);
            count++;
          }

          @Override
          public void finish(long[] resultIndex) {
            result.set(mean ? value / count : value, resultIndex);
          }
        });
  }

  /** The first largest or smallest element; a NaN is larger and smaller than all. */
  private static void best(HostCall call, boolean largest, int values, int indices) {
    reduce(
        call,
        new Accumulator() {
          private double value;
          private long at;

          @Override
          public void start() {
            at = -1;
          }

          @Override
          public void add(double element, long index) {
            boolean better =
                at < 0
                    || (!Double.isNaN(value)
                        && (Double.isNaN(element)
                            || (largest ? element > value : element < value)));
            if (better) {
              value = element;
              at = index;
            }
          }

          @Override
          public void finish(long[] resultIndex) {
            if (at < 0) {
              throw new IllegalArgumentException("there is no element to choose from");
            }
            if (values >= 0) {
              call.result(values).set(value, resultIndex);
            }
            call.result(indices).setLong(at, resultIndex);
          }
        });
  }

  private static void reduce(HostCall call, Accumulator accumulator) {
    var self = call.tensor("self");
    int rank = self.type().rank();
    var dims =
        call.hasParam("dim") && call.has("dim") ? call.integers("dim") : ImmutableLongArray.of();
    boolean keepdim = call.hasParam("keepdim") && call.bool("keepdim");
    var reduced = new boolean[rank];
    for (int i = 0; i < rank; i++) {
      reduced[i] = dims.isEmpty();
    }
    for (long dim : dims.asList()) {
      int index = OpCall.wrapDim(dim, rank, "dim");
      if (index < rank) {
        reduced[index] = true;
      }
    }
    new Walk(self, reduced, keepdim, accumulator).run();
  }

  /** Goes over the results, and for each over its elements. */
  private static final class Walk {
    private final HostTensor self;
    private final boolean keepdim;
    private final Accumulator accumulator;
    private final List<Integer> kept = new ArrayList<>();
    private final List<Integer> gone = new ArrayList<>();

    Walk(HostTensor self, boolean[] reduced, boolean keepdim, Accumulator accumulator) {
      this.self = self;
      this.keepdim = keepdim;
      this.accumulator = accumulator;
      for (int i = 0; i < reduced.length; i++) {
        (reduced[i] ? gone : kept).add(i);
      }
    }

    void run() {
      var type = self.type();
      var keptSizes = kept.stream().mapToLong(type::size).toArray();
      var goneSizes = gone.stream().mapToLong(type::size).toArray();
      var goneStrides =
          gone.stream().mapToLong(dim -> type.stride(dim) * type.dtype().bytes()).toArray();
      var index = new long[keptSizes.length];
      for (long size : keptSizes) {
        if (size == 0) {
          return;
        }
      }
      var values = new double[Loops.CHUNK];
      do {
        long base = 0;
        for (int i = 0; i < index.length; i++) {
          base += index[i] * type.stride(kept.get(i)) * type.dtype().bytes();
        }
        long start = base;
        var seen = new long[1];
        accumulator.start();
        Loops.forEach(
            goneSizes,
            List.of(goneStrides),
            (offsets, steps, count) -> {
              Elements.load(
                  self.memory(), start + offsets[0], steps[0], type.dtype(), values, count);
              for (int i = 0; i < count; i++) {
                accumulator.add(values[i], seen[0]++);
              }
            });
        accumulator.finish(resultIndex(index));
      } while (next(index, keptSizes));
    }

    private long[] resultIndex(long[] index) {
      if (!keepdim) {
        return index;
      }
      var full = new long[self.type().rank()];
      for (int i = 0; i < index.length; i++) {
        full[kept.get(i)] = index[i];
      }
      return full;
    }

    private static boolean next(long[] index, long[] sizes) {
      for (int i = index.length - 1; i >= 0; i--) {
        if (++index[i] < sizes[i]) {
          return true;
        }
        index[i] = 0;
      }
      return false;
    }
  }
}
