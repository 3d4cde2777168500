package dev.symplan.runtime.host;

import dev.symplan.ir.DType;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.Loops;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * The arithmetic of reducing collectives: in the order of the sources, in f32 for f32, bf16 and
 * f16, in f64 for f64, in 64 bits for integers; rounded once, at the end. {@code avg} divides the
 * sum.
 */
final class Reducer {
  private Reducer() {}

  /**
   * Reduces elements {@code from .. to} of the sources and writes them into each target, the first
   * at element {@code at}.
   *
   * <p>Targets may be the sources: each piece is read before it is written.
   */
  static void reduce(
      String op,
      DType dtype,
      List<MemorySegment> sources,
      long from,
      long to,
      List<MemorySegment> targets,
      long at) {
    int width = dtype.bytes();
    for (long start = from; start < to; start += Loops.CHUNK) {
      int count = (int) Math.min(Loops.CHUNK, to - start);
      long target = (at + start - from) * width;
      if (dtype.isFloat()) {
        var sum = new double[count];
        floats(op, dtype, sources, start * width, sum);
        targets.forEach(memory -> Elements.store(sum, count, memory, target, width, dtype));
      } else {
        var sum = new long[count];
        integers(op, dtype, sources, start * width, sum);
        targets.forEach(memory -> Elements.store(sum, count, memory, target, width, dtype));
      }
    }
  }

  private static void floats(
      String op, DType dtype, List<MemorySegment> sources, long offset, double[] sum) {
    int count = sum.length;
    boolean wide = dtype == DType.F64;
    var next = new double[count];
    Elements.load(sources.getFirst(), offset, dtype.bytes(), dtype, sum, count);
    for (var source : sources.subList(1, sources.size())) {
      Elements.load(source, offset, dtype.bytes(), dtype, next, count);
      for (int i = 0; i < count; i++) {
        double value =
            switch (op) {
              case "sum", "avg" -> sum[i] + next[i];
              case "product" -> sum[i] * next[i];
              case "min" -> min(sum[i], next[i]);
              case "max" -> max(sum[i], next[i]);
              default -> throw unknown(op, dtype);
            };
        sum[i] = wide ? value : (float) value;
      }
    }
    if (op.equals("avg")) {
      for (int i = 0; i < count; i++) {
        sum[i] = wide ? sum[i] / sources.size() : (float) (sum[i] / sources.size());
      }
    }
  }

  private static double min(double a, double b) {
    return Double.isNaN(a) || Double.isNaN(b) ? Double.NaN : Math.min(a, b);
  }

  private static double max(double a, double b) {
    return Double.isNaN(a) || Double.isNaN(b) ? Double.NaN : Math.max(a, b);
  }

  private static void integers(
      String op, DType dtype, List<MemorySegment> sources, long offset, long[] sum) {
    int count = sum.length;
    var next = new long[count];
    Elements.load(sources.getFirst(), offset, dtype.bytes(), dtype, sum, count);
    for (var source : sources.subList(1, sources.size())) {
      Elements.load(source, offset, dtype.bytes(), dtype, next, count);
      for (int i = 0; i < count; i++) {
        sum[i] =
            switch (op) {
              case "sum" -> sum[i] + next[i];
              case "product" -> sum[i] * next[i];
              case "min" ->
                  dtype == DType.U64 && Long.compareUnsigned(sum[i], next[i]) <= 0
                      ? sum[i]
                      : dtype == DType.U64 ? next[i] : Math.min(sum[i], next[i]);
              case "max" ->
                  dtype == DType.U64 && Long.compareUnsigned(sum[i], next[i]) >= 0
                      ? sum[i]
                      : dtype == DType.U64 ? next[i] : Math.max(sum[i], next[i]);
              case "band" -> sum[i] & next[i];
              case "bor" -> sum[i] | next[i];
              case "bxor" -> sum[i] ^ next[i];
              default -> throw unknown(op, dtype);
            };
      }
    }
  }

  private static IllegalArgumentException unknown(String op, DType dtype) {
    return new IllegalArgumentException("no reduction " + op + " for " + dtype.shortName());
  }
}
