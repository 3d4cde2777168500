package dev.symplan.codegen.cuda;

import dev.symplan.ir.DType;
import dev.symplan.ir.op.ReduceOp;

/**
 * How a kernel combines elements: {@code Element} in memory, {@code Sum} in between, {@code Made}
 * in the result; {@code widen}, {@code combine}, {@code finish} and {@code narrow}. In the order of
 * the ranks, rounded once.
 */
final class Arithmetic {
  private Arithmetic() {}

  /** {@return elements that are only moved, of so many bytes} */
  static String none(int bytes) {
    return """

    typedef %s Element;
    typedef Element Sum;
    typedef Element Made;
    __device__ __forceinline__ Sum widen(Element e) { return e; }
    __device__ __forceinline__ Made narrow(Sum s) { return s; }
    __device__ __forceinline__ Sum combine(Sum a, Sum) { return a; }
    __device__ __forceinline__ Sum finish(Sum s) { return s; }
    """
        .formatted(CTypes.bits(Math.min(8, bytes)));
  }

  /** {@return elements that are combined as the host backend combines them} */
  static String of(DType dtype, ReduceOp reduceOp, int sources) {
    return of(dtype, dtype, reduceOp, sources);
  }

  /** {@return the same, where the result has elements of another type, computed with as these} */
  static String of(DType dtype, DType made, ReduceOp reduceOp, int sources) {
    boolean floats = dtype.isFloat();
    String combined =
        switch (reduceOp) {
          case SUM, AVG -> "a + b";
          case PRODUCT -> "a * b";
          case MIN -> floats ? "a != a ? a : b != b ? b : fmin(a, b)" : "a < b ? a : b";
          case MAX -> floats ? "a != a ? a : b != b ? b : fmax(a, b)" : "a > b ? a : b";
          case BAND -> "a & b";
          case BOR -> "a | b";
          case BXOR -> "a ^ b";
        };
    return CTypes.PRELUDE
        + """

        typedef %s Element;
        typedef %s Sum;
        typedef %s Made;
        __device__ __forceinline__ Sum widen(Element e) { return %s; }
        __device__ __forceinline__ Made narrow(Sum s) { return %s; }
        __device__ __forceinline__ Sum combine(Sum a, Sum b) { return %s; }
        __device__ __forceinline__ Sum finish(Sum s) { return %s; }
        """
            .formatted(
                CTypes.stored(dtype),
                CTypes.computed(dtype),
                CTypes.stored(made),
                CTypes.widen(dtype, "e"),
                CTypes.narrow(made, "s"),
                combined,
                reduceOp == ReduceOp.AVG ? "s / " + sources : "s");
  }
}
