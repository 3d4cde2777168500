package dev.symplan.runtime.tensor;

import dev.symplan.ir.DType;
import java.util.List;

/**
 * The difference between a tensor and the expected one.
 *
 * @param dtype the element type of both
 * @param maxAbs the largest absolute difference; infinite if only one of the two is NaN or infinite
 * @param relativeL2 the norm of the difference over the norm of the expected tensor
 * @param largest the largest finite absolute value that is expected
 * @param unequal the number of elements that differ at all
 */
public record TensorDiff(
    DType dtype, double maxAbs, double relativeL2, double largest, long unequal) {

  /** The {@link #limit} of f32 and f64, as relative L2 error. */
  public static final double FLOAT_LIMIT = 1e-5;

  /** The limit of bf16 and f16. */
  public static final double SHORT_FLOAT_LIMIT = 1e-2;

  /**
   * {@return the differences}
   *
   * @throws IllegalArgumentException when shapes or element types differ
   */
  public static TensorDiff between(HostTensor actual, HostTensor expected) {
    if (actual.dtype() != expected.dtype()
        || !actual.type().sizes().equals(expected.type().sizes())) {
      throw new IllegalArgumentException(
          "%s cannot be compared with %s".formatted(actual.type(), expected.type()));
    }
    if (actual.dtype().kind() == DType.Kind.COMPLEX) {
      return between(actual.as(actual.type().parts()), expected.as(expected.type().parts()));
    }
    var sizes = actual.type().sizes().toArray();
    var strides =
        List.of(Loops.byteStrides(actual.type(), sizes), Loops.byteStrides(expected.type(), sizes));
    var sums = new double[4];
    var unequal = new long[1];
    var a = new double[Loops.CHUNK];
    var b = new double[Loops.CHUNK];
    Loops.forEach(
        sizes,
        strides,
        (offsets, steps, count) -> {
          Elements.load(actual.memory(), offsets[0], steps[0], actual.dtype(), a, count);
          Elements.load(expected.memory(), offsets[1], steps[1], expected.dtype(), b, count);
          for (int i = 0; i < count; i++) {
            double difference = difference(a[i], b[i]);
            unequal[0] += difference != 0 ? 1 : 0;
            sums[0] = Math.max(sums[0], difference);
            sums[1] += difference * difference;
            if (Double.isFinite(b[i])) {
              sums[2] += b[i] * b[i];
              sums[3] = Math.max(sums[3], Math.abs(b[i]));
            }
          }
        });
    double norm = Math.sqrt(sums[2]);
    double error = Math.sqrt(sums[1]);
    double relative = error == 0 ? 0 : norm == 0 ? Double.POSITIVE_INFINITY : error / norm;
    return new TensorDiff(actual.dtype(), sums[0], relative, sums[3], unequal[0]);
  }

  private static double difference(double a, double b) {
    if (a == b || (Double.isNaN(a) && Double.isNaN(b))) {
      return 0;
    }
    double difference = Math.abs(a - b);
    return Double.isNaN(difference) ? Double.POSITIVE_INFINITY : difference;
  }

  /**
   * {@return the largest relative L2 error that rounding explains; 0 for integers and bools}
   *
   * @param roundedTo the shortest float type that the tensor went through, as {@link Rounding} has
   *     it: values that were bf16 once are not more exact in f32
   */
  public double limit(DType roundedTo) {
    return limit(dtype, roundedTo);
  }

  /** {@return the same for any tensor of an element type} */
  public static double limit(DType dtype, DType roundedTo) {
    double own = limitOf(dtype);
    return own == 0 ? 0 : Math.max(own, limitOf(roundedTo));
  }

  private static double limitOf(DType dtype) {
    return switch (dtype) {
      case F64, F32 -> FLOAT_LIMIT;
      case F16, BF16, F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU -> SHORT_FLOAT_LIMIT;
      case I64, I32, I16, I8, U64, U32, U16, U8, BOOL, C32, C64, C128 -> 0;
    };
  }

  /** {@return whether the difference is within the {@link #limit}} */
  public boolean isWithin(DType roundedTo) {
    double limit = limit(roundedTo);
    return limit == 0 ? unequal == 0 : relativeL2 <= limit;
  }
}
