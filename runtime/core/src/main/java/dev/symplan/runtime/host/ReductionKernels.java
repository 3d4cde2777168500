package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.List;
import java.util.function.DoubleBinaryOperator;
import java.util.function.DoubleUnaryOperator;
import java.util.function.LongBinaryOperator;

/** Sums, products, extremes and truth over dimensions. */
final class ReductionKernels {
  private ReductionKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var name : List.of("aten::sum", "aten::sum.dim_IntList")) {
      table.put(name, call -> fold(call, 0, Double::sum, 0, Long::sum));
    }
    for (var name : List.of("aten::prod", "aten::prod.dim_int")) {
      table.put(name, call -> fold(call, 1, (a, b) -> a * b, 1, (a, b) -> a * b));
    }
    table.put(
        "aten::nansum", call -> fold(call, 0, (a, b) -> Double.isNaN(b) ? a : a + b, 0, Long::sum));
    for (var name : List.of("aten::mean", "aten::mean.dim")) {
      table.put(name, ReductionKernels::mean);
    }
    for (var name : List.of("aten::amax", "aten::max")) {
      table.put(name, call -> extreme(call, call.result(), true));
    }
    for (var name : List.of("aten::amin", "aten::min")) {
      table.put(name, call -> extreme(call, call.result(), false));
    }
    table.put(
        "aten::aminmax",
        call -> {
          extreme(call, call.result(0), false);
          extreme(call, call.result(1), true);
        });
    for (var overload : List.of("", ".dim", ".dims")) {
      table.put("aten::any" + overload, call -> truth(call, true));
      table.put("aten::all" + overload, call -> truth(call, false));
    }
    for (var name : List.of("aten::count_nonzero", "aten::count_nonzero.dim_IntList")) {
      table.put(name, ReductionKernels::countNonzero);
    }
    table.put("aten::max.dim", call -> best(call, true, 0, 1));
    table.put("aten::min.dim", call -> best(call, false, 0, 1));
    table.put("aten::argmax", call -> best(call, true, -1, 0));
    table.put("aten::argmin", call -> best(call, false, -1, 0));
    return table.buildOrThrow();
  }

  private static void fold(
      HostCall call,
      double first,
      DoubleBinaryOperator doubles,
      long firstLong,
      LongBinaryOperator longs) {
    var reduction = Reduction.of(call);
    var result = call.result();
    if (result.dtype().isFloat() || reduction.self().dtype().isFloat()) {
      fold(reduction, result, first, doubles, x -> x);
    } else {
      fold(reduction, result, firstLong, longs);
    }
  }

  static void fold(
      Reduction reduction,
      HostTensor result,
      double first,
      DoubleBinaryOperator f,
      DoubleUnaryOperator last) {
    reduction.run(
        new Reduction.Doubles() {
          private double value;

          @Override
          public void start() {
            value = first;
          }

          @Override
          public void add(double[] values, int count, long at) {
            double sum = value;
            for (int i = 0; i < count; i++) {
              sum = f.applyAsDouble(sum, values[i]);
            }
            value = sum;
          }

          @Override
          public void finish(long[] index) {
            result.set(last.applyAsDouble(value), index);
          }
        });
  }

  private static void fold(
      Reduction reduction, HostTensor result, long first, LongBinaryOperator f) {
    reduction.run(
        new Reduction.Longs() {
          private long value;

          @Override
          public void start() {
            value = first;
          }

          @Override
          public void add(long[] values, int count, long at) {
            long sum = value;
            for (int i = 0; i < count; i++) {
              sum = f.applyAsLong(sum, values[i]);
            }
            value = sum;
          }

          @Override
          public void finish(long[] index) {
            result.setLong(value, index);
          }
        });
  }

  private static void mean(HostCall call) {
    var reduction = Reduction.of(call);
    double count = reduction.count();
    fold(reduction, call.result(), 0, Double::sum, sum -> sum / count);
  }

  private static void extreme(HostCall call, HostTensor result, boolean largest) {
    var reduction = Reduction.of(call);
    if (reduction.self().dtype().isFloat()) {
      fold(
          reduction,
          result,
          largest ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY,
          largest ? Math::max : Math::min,
          x -> x);
    } else {
      fold(
          reduction,
          result,
          largest ? Long.MIN_VALUE : Long.MAX_VALUE,
          largest ? Math::max : Math::min);
    }
  }

  private static void truth(HostCall call, boolean any) {
    var dims = call.schema().name().overload().equals("dims") && call.has("dim");
    // Here, but nowhere else, an empty list of dimensions reduces none.
    var reduction =
        dims && call.integers("dim").isEmpty()
            ? new Reduction(
                call.tensor("self"),
                new boolean[Math.max(1, call.tensor("self").type().rank())],
                true)
            : Reduction.of(call);
    fold(
        reduction,
        call.result(),
        any ? 0 : 1,
        any ? (a, b) -> a != 0 || b != 0 ? 1 : 0 : (a, b) -> a != 0 && b != 0 ? 1 : 0,
        x -> x);
  }

  private static void countNonzero(HostCall call) {
    fold(Reduction.of(call), call.result(), 0, (count, x) -> x != 0 ? count + 1 : count, x -> x);
  }

  /** The first largest or smallest element; a NaN is larger and smaller than all. */
  private static void best(HostCall call, boolean largest, int values, int indices) {
    if (call.tensor("self").dtype().isFloat()) {
      bestFloat(call, largest, values, indices);
    } else {
      bestInteger(call, largest, values, indices);
    }
  }

  private static void bestFloat(HostCall call, boolean largest, int values, int indices) {
    Reduction.of(call)
        .run(
            new Reduction.Doubles() {
              private double value;
              private long at;

              @Override
              public void start() {
                at = -1;
              }

              @Override
              public void add(double[] elements, int count, long first) {
                for (int i = 0; i < count; i++) {
                  double x = elements[i];
                  if (at < 0
                      || (!Double.isNaN(value)
                          && (Double.isNaN(x) || (largest ? x > value : x < value)))) {
                    value = x;
                    at = first + i;
                  }
                }
              }

              @Override
              public void finish(long[] index) {
                checkFound(at);
                if (values >= 0 && call.hasResult(values)) {
                  call.result(values).set(value, index);
                }
                if (call.hasResult(indices)) {
                  call.result(indices).setLong(at, index);
                }
              }
            });
  }

  private static void bestInteger(HostCall call, boolean largest, int values, int indices) {
    Reduction.of(call)
        .run(
            new Reduction.Longs() {
              private long value;
              private long at;

              @Override
              public void start() {
                at = -1;
              }

              @Override
              public void add(long[] elements, int count, long first) {
                for (int i = 0; i < count; i++) {
                  long x = elements[i];
                  if (at < 0 || (largest ? x > value : x < value)) {
                    value = x;
                    at = first + i;
                  }
                }
              }

              @Override
              public void finish(long[] index) {
                checkFound(at);
                if (values >= 0 && call.hasResult(values)) {
                  call.result(values).setLong(value, index);
                }
                if (call.hasResult(indices)) {
                  call.result(indices).setLong(at, index);
                }
              }
            });
  }

  private static void checkFound(long at) {
    if (at < 0) {
      throw new HostKernelException("there is no element to choose from");
    }
  }
}
