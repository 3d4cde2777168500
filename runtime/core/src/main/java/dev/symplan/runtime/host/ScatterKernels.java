package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.List;

/** Gather and scatter: an index for each element along one dimension. */
final class ScatterKernels {

  /** How an element is combined with what is there; in the order of the indices. */
  private enum Combine {
    SET,
    ADD,
    MULTIPLY,
    MEAN,
    MAX,
    MIN;

    static Combine of(String reduce) {
      return switch (reduce) {
        case "add", "sum" -> ADD;
        case "multiply", "prod" -> MULTIPLY;
        case "mean" -> MEAN;
        case "amax" -> MAX;
        case "amin" -> MIN;
        default -> throw new HostKernelException("unknown reduction '" + reduce + "'");
      };
    }

    double apply(double a, double b) {
      return switch (this) {
        case SET -> b;
        case ADD, MEAN -> a + b;
        case MULTIPLY -> a * b;
        case MAX -> Math.max(a, b);
        case MIN -> Math.min(a, b);
      };
    }

    long apply(long a, long b, boolean unsigned) {
      return switch (this) {
        case SET -> b;
        case ADD, MEAN -> a + b;
        case MULTIPLY -> a * b;
        case MAX -> compare(a, b, unsigned) < 0 ? b : a;
        case MIN -> compare(a, b, unsigned) > 0 ? b : a;
      };
    }
  }

  private ScatterKernels() {}

  private static int compare(long a, long b, boolean unsigned) {
    return unsigned ? Long.compareUnsigned(a, b) : Long.compare(a, b);
  }

  static ImmutableMap<String, HostKernel> table() {
    return ImmutableMap.<String, HostKernel>builder()
        .put("aten::gather", ScatterKernels::gather)
        .put("aten::scatter.src", call -> scatter(call, "src", Combine.SET, true))
        .put("aten::scatter.value", call -> scatter(call, "value", Combine.SET, true))
        .put(
            "aten::scatter.reduce",
            call -> scatter(call, "src", Combine.of(call.string("reduce")), true))
        .put(
            "aten::scatter.value_reduce",
            call -> scatter(call, "value", Combine.of(call.string("reduce")), true))
        .put("aten::scatter_add", call -> scatter(call, "src", Combine.ADD, true))
        .put(
            "aten::scatter_reduce.two",
            call ->
                scatter(call, "src", Combine.of(call.string("reduce")), call.bool("include_self")))
        .put("aten::masked_scatter", ScatterKernels::maskedScatter)
        .buildOrThrow();
  }

  private static int dim(HostCall call) {
    return OpCall.wrapDim(call.integer("dim"), call.tensor("self").type().rank(), "dim");
  }

  private static void gather(HostCall call) {
    // An index without elements may have any shape.
    if (call.result().type().numel() == 0) {
      return;
    }
    int dim = dim(call);
    AlongDim.forEach(
        dim,
        List.of(call.tensor("index"), call.tensor("self"), call.result()),
        rows -> {
          var indices = rows[0].loadLongs();
          for (int i = 0; i < indices.length; i++) {
            rows[2].copy(i, rows[1], IndexedElements.check(indices[i], rows[1].size(), dim));
          }
        });
  }

  private static void scatter(HostCall call, String source, Combine combine, boolean withSelf) {
    var result = call.result();
    boolean narrow =
        combine != Combine.SET && result.dtype().isFloat() && result.dtype().bytes() < 4;
    var target =
        narrow ? HostTensor.allocate(result.type().contiguous().withDType(DType.F32)) : result;
    target.copyFrom(call.tensor("self"));
    var index = call.tensor("index");
    if (index.type().numel() > 0) {
      scatter(index, source(call, source, index), target, dim(call), combine, withSelf);
    }
    if (narrow) {
      result.copyFrom(target);
    }
  }

  private static HostTensor source(HostCall call, String param, HostTensor index) {
    if (param.equals("src")) {
      return call.tensor(param);
    }
    var value = CreationKernels.scalar(call, param, call.result().dtype());
    return Views.expand(value, index.type().sizes());
  }

  private static void scatter(
      HostTensor index,
      HostTensor source,
      HostTensor target,
      int dim,
      Combine combine,
      boolean withSelf) {
    AlongDim.forEach(
        dim,
        List.of(index, source, target),
        rows -> {
          var indices = rows[0].loadLongs();
          for (long at : indices) {
            IndexedElements.check(at, rows[2].size(), dim);
          }
          if (target.dtype().isFloat()) {
            var values = rows[2].load();
            scatter(indices, rows[1].load(), values, combine, withSelf);
            rows[2].store(values);
          } else {
            var values = rows[2].loadLongs();
            boolean unsigned = target.dtype() == DType.U64;
            scatter(indices, rows[1].loadLongs(), values, combine, withSelf, unsigned);
            rows[2].store(values);
          }
        });
  }

  private static void scatter(
      long[] indices, double[] from, double[] to, Combine combine, boolean withSelf) {
    var counts = new long[to.length];
    for (int i = 0; i < indices.length; i++) {
      int at = (int) indices[i];
      to[at] = counts[at]++ == 0 && !withSelf ? from[i] : combine.apply(to[at], from[i]);
    }
    for (int i = 0; combine == Combine.MEAN && i < to.length; i++) {
      to[i] /= Math.max(1, counts[i] + (withSelf ? 1 : 0));
    }
  }

  private static void scatter(
      long[] indices, long[] from, long[] to, Combine combine, boolean withSelf, boolean unsigned) {
    var counts = new long[to.length];
    for (int i = 0; i < indices.length; i++) {
      int at = (int) indices[i];
      to[at] = counts[at]++ == 0 && !withSelf ? from[i] : combine.apply(to[at], from[i], unsigned);
    }
    for (int i = 0; combine == Combine.MEAN && i < to.length; i++) {
      long count = Math.max(1, counts[i] + (withSelf ? 1 : 0));
      to[i] = unsigned ? Long.divideUnsigned(to[i], count) : Math.floorDiv(to[i], count);
    }
  }

  private static void maskedScatter(HostCall call) {
    var result = call.result();
    var sizes = result.type().sizes();
    var values = Views.expand(call.tensor("self"), sizes).copyAs(result.type().contiguous());
    var target = Views.flat(values);
    var mask = Views.flat(Views.expand(call.tensor("mask"), sizes));
    var source = Views.flat(call.tensor("source"));
    long next = 0;
    for (long i = 0; i < target.type().numel(); i++) {
      if (mask.getLong(i) != 0) {
        if (next == source.type().numel()) {
          throw new HostKernelException(
              "the mask names more elements than the %s of source".formatted(next));
        }
        Views.select(target, 0, i).copyFrom(Views.select(source, 0, next++));
      }
    }
    result.copyFrom(values);
  }
}
