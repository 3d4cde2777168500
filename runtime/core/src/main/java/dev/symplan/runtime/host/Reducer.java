package dev.symplan.runtime.host;

import dev.symplan.codegen.expr.Rounding;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.runtime.tensor.Elements;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * The arithmetic of reducing collectives: in the order of the sources, in f32 for f32, bf16 and
 * f16, in f64 for f64, in 64 bits for integers; rounded once, at the end, to the type of the
 * targets. {@code avg} divides the sum. Complex numbers are added as pairs of floats.
 */
final class Reducer {
  /** Elements that are worked on at once; they stay in the first-level cache. */
  private static final int CHUNK = 2048;

  private final ReduceOp op;
  private final DType dtype;
  private final DType made;
  private final int perElement;

  /**
   * @param made the type of the targets: that of the sources, or {@link DType#F32} for short floats
   * @throws IllegalArgumentException when there is no such reduction of such elements
   */
  Reducer(ReduceOp op, DType dtype, DType made) {
    this.op = op;
    this.dtype = dtype.real();
    this.made = made.real();
    this.perElement = dtype.kind() == DType.Kind.COMPLEX ? 2 : 1;
    if (!op.isDefinedOn(dtype) || !Elements.computes(this.dtype)) {
      throw new IllegalArgumentException(
          "the host backend has no reduction %s of %s".formatted(op, dtype.shortName()));
    }
  }

  /**
   * Reduces the first elements of the sources and writes them into each target.
   *
   * <p>Targets may be the sources: each piece is read before it is written.
   */
  void reduce(List<MemorySegment> sources, long elements, List<MemorySegment> targets) {
    long count = elements * perElement;
    switch (dtype) {
      case F32, F16, BF16 -> floats(sources, count, targets);
      case F64 -> doubles(sources, count, targets);
      default -> integers(sources, count, targets);
    }
  }

  private void floats(List<MemorySegment> sources, long end, List<MemorySegment> targets) {
    var sum = new float[CHUNK];
    var next = new float[CHUNK];
    var bits = new short[dtype == DType.F32 ? 0 : CHUNK];
    int width = dtype.bytes();
    for (long start = 0; start < end; start += CHUNK) {
      int count = (int) Math.min(CHUNK, end - start);
      load(sources.getFirst(), start * width, sum, bits, count);
      for (int s = 1; s < sources.size(); s++) {
        load(sources.get(s), start * width, next, bits, count);
        combine(sum, next, count);
      }
      if (op == ReduceOp.AVG) {
        for (int i = 0; i < count; i++) {
          sum[i] /= sources.size();
        }
      }
      narrow(sum, bits, count);
      for (var target : targets) {
        store(sum, bits, target, start * made.bytes(), count);
      }
    }
  }

  private void load(MemorySegment source, long offset, float[] into, short[] bits, int count) {
    if (dtype == DType.F32) {
      MemorySegment.copy(source, Elements.FLOAT, offset, into, 0, count);
      return;
    }
    MemorySegment.copy(source, Elements.SHORT, offset, bits, 0, count);
    if (dtype == DType.F16) {
      for (int i = 0; i < count; i++) {
        into[i] = Float.float16ToFloat(bits[i]);
      }
    } else {
      for (int i = 0; i < count; i++) {
        into[i] = Rounding.fromBFloat16(bits[i]);
      }
    }
  }

  private void combine(float[] sum, float[] next, int count) {
    switch (op) {
      case SUM, AVG -> {
        for (int i = 0; i < count; i++) {
          sum[i] += next[i];
        }
      }
      case PRODUCT -> {
        for (int i = 0; i < count; i++) {
          sum[i] *= next[i];
        }
      }
      case MIN -> {
        for (int i = 0; i < count; i++) {
          sum[i] = Math.min(sum[i], next[i]);
        }
      }
      case MAX -> {
        for (int i = 0; i < count; i++) {
          sum[i] = Math.max(sum[i], next[i]);
        }
      }
      case BAND, BOR, BXOR -> throw new IllegalStateException();
    }
  }

  private void narrow(float[] sum, short[] bits, int count) {
    if (made == DType.F16) {
      for (int i = 0; i < count; i++) {
        bits[i] = Float.floatToFloat16(sum[i]);
      }
    } else if (made == DType.BF16) {
      for (int i = 0; i < count; i++) {
        bits[i] = Rounding.toBFloat16(sum[i]);
      }
    }
  }

  private void store(float[] sum, short[] bits, MemorySegment target, long offset, int count) {
    if (made == DType.F32) {
      MemorySegment.copy(sum, 0, target, Elements.FLOAT, offset, count);
    } else {
      MemorySegment.copy(bits, 0, target, Elements.SHORT, offset, count);
    }
  }

  private void doubles(List<MemorySegment> sources, long end, List<MemorySegment> targets) {
    var sum = new double[CHUNK];
    var next = new double[CHUNK];
    for (long start = 0; start < end; start += CHUNK) {
      int count = (int) Math.min(CHUNK, end - start);
      MemorySegment.copy(sources.getFirst(), Elements.DOUBLE, start * Double.BYTES, sum, 0, count);
      for (int s = 1; s < sources.size(); s++) {
        MemorySegment.copy(sources.get(s), Elements.DOUBLE, start * Double.BYTES, next, 0, count);
        for (int i = 0; i < count; i++) {
          sum[i] =
              switch (op) {
                case SUM, AVG -> sum[i] + next[i];
                case PRODUCT -> sum[i] * next[i];
                case MIN -> Math.min(sum[i], next[i]);
                case MAX -> Math.max(sum[i], next[i]);
                case BAND, BOR, BXOR -> throw new IllegalStateException();
              };
        }
      }
      if (op == ReduceOp.AVG) {
        for (int i = 0; i < count; i++) {
          sum[i] /= sources.size();
        }
      }
      for (var target : targets) {
        MemorySegment.copy(sum, 0, target, Elements.DOUBLE, start * Double.BYTES, count);
      }
    }
  }

  private void integers(List<MemorySegment> sources, long end, List<MemorySegment> targets) {
    var sum = new long[CHUNK];
    var next = new long[CHUNK];
    int width = dtype.bytes();
    for (long start = 0; start < end; start += CHUNK) {
      int count = (int) Math.min(CHUNK, end - start);
      Elements.load(sources.getFirst(), start * width, width, dtype, sum, count);
      for (int s = 1; s < sources.size(); s++) {
        Elements.load(sources.get(s), start * width, width, dtype, next, count);
        for (int i = 0; i < count; i++) {
          sum[i] = combine(sum[i], next[i]);
        }
      }
      for (var target : targets) {
        Elements.store(sum, count, target, start * width, width, dtype);
      }
    }
  }

  private long combine(long a, long b) {
    boolean unsigned = dtype == DType.U64;
    return switch (op) {
      case SUM -> a + b;
      case PRODUCT -> a * b;
      case MIN -> (unsigned ? Long.compareUnsigned(a, b) : Long.compare(a, b)) <= 0 ? a : b;
      case MAX -> (unsigned ? Long.compareUnsigned(a, b) : Long.compare(a, b)) >= 0 ? a : b;
      case BAND -> a & b;
      case BOR -> a | b;
      case BXOR -> a ^ b;
      case AVG -> throw new IllegalStateException();
    };
  }
}
