package dev.symplan.runtime.fuzz;

import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.ValueLayout;
import java.util.Locale;
import java.util.SplittableRandom;

/**
 * The numbers that an input gets.
 *
 * @param kind the kind of elements
 * @param bound the limit of {@link Kind#INDEX}, {@link Kind#ENDS} and {@link Kind#TIMES}
 */
record Fill(Kind kind, long bound) {
  static final Fill ANY = new Fill(Kind.ANY, 0);

  enum Kind {
    /** Anything, with now and then a special float. */
    ANY,
    /** Integers from 0 to below the bound. */
    INDEX,
    /** Numbers that never fall. */
    SORTED,
    /** Between 0 and 1. */
    UNIT,
    /** At least 1: a divisor. */
    POSITIVE,
    /** Integers that never fall and end with the bound. */
    ENDS,
    /** Integers of which all are the bound. */
    TIMES
  }

  static Fill index(long bound) {
    return new Fill(Kind.INDEX, bound);
  }

  static Fill of(Kind kind) {
    return new Fill(kind, 0);
  }

  /** Writes all of a tensor's memory, gaps between its elements included. */
  void write(HostTensor tensor, SplittableRandom random) {
    var dtype = tensor.dtype();
    int width = dtype.bytes();
    long count = tensor.type().storageBytes() / width;
    var flat = tensor.as(TensorType.contiguous(dtype, count));
    double last = -2;
    for (long i = 0; i < count; i++) {
      long at = i * width;
      if (dtype.kind() == DType.Kind.COMPLEX) {
        for (int b = 0; b < width; b += 4) {
          tensor
              .memory()
              .set(ValueLayout.JAVA_FLOAT_UNALIGNED, at + b, (float) random.nextGaussian());
        }
        continue;
      }
      if (dtype.isFloat() && width == 1) {
        tensor.memory().set(ValueLayout.JAVA_BYTE, at, (byte) random.nextInt(0x78));
        continue;
      }
      last =
          switch (kind) {
            case ANY -> any(dtype, random);
            case INDEX -> bound == 0 ? 0 : random.nextLong(bound);
            case SORTED -> last + random.nextInt(3);
            case UNIT -> random.nextDouble();
            case POSITIVE -> 1 + random.nextInt(9);
            case ENDS -> i == count - 1 ? bound : Math.max(last, random.nextLong(bound + 1));
            case TIMES -> bound;
          };
      if (dtype.isFloat()) {
        flat.set(last, i);
      } else {
        flat.setLong((long) last, i);
      }
    }
  }

  private static double any(DType dtype, SplittableRandom random) {
    return switch (dtype.kind()) {
      case BOOL -> random.nextInt(2);
      case INTEGER -> random.nextInt(16) == 0 ? random.nextInt(256) - 128 : random.nextInt(-4, 9);
      case FLOAT, COMPLEX ->
          switch (random.nextInt(60)) {
            case 0 -> Double.NaN;
            case 1 -> Double.POSITIVE_INFINITY;
            case 2 -> Double.NEGATIVE_INFINITY;
            case 3 -> -0.0;
            case 4 -> 0;
            case 5 -> 1e-40;
            case 6 -> 3e4;
            default -> random.nextGaussian() * 2;
          };
    };
  }

  @Override
  public String toString() {
    return kind == Kind.ANY ? "any" : kind.name().toLowerCase(Locale.ROOT) + " " + bound;
  }
}
