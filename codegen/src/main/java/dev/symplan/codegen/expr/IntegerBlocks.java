package dev.symplan.codegen.expr;

import dev.symplan.codegen.expr.Primitive.Comparison;
import dev.symplan.codegen.expr.Primitive.FloatFunction;
import dev.symplan.codegen.expr.Primitive.Fold;
import dev.symplan.codegen.expr.Primitive.Known;
import dev.symplan.codegen.expr.Primitive.Operator;
import dev.symplan.codegen.expr.Primitive.Scan;
import java.util.Arrays;
import java.util.function.LongBinaryOperator;

/** Primitives of integers, in 64 bits. */
record IntegerBlocks() implements Blocks<long[]> {

  @Override
  public long[] allocate(int size) {
    return new long[size];
  }

  @Override
  public void fill(long[] values, Expr number) {
    Arrays.fill(values, whole(number));
  }

  private static long whole(Expr expr) {
    return switch (expr) {
      case Expr.Int(long value) -> value;
      case Expr.Float(double value) -> (long) value;
      case Expr.Param _, Expr.Text _, Expr.Apply _ ->
          throw new IllegalArgumentException(expr + " is not a number");
    };
  }

  @Override
  public void spread(long[] from, int at, long[] to, int first, int n) {
    Arrays.fill(to, first, first + n, from[at]);
  }

  @Override
  public void apply(Primitive primitive, long[] a, long[] b, long[] c, long[] out, int n) {
    switch (primitive) {
      case Operator operator -> operate(operator, a, b, out, n);
      case Comparison comparison -> compare(comparison, a, b, out, n);
      case Primitive.Function function -> apply(function, a, b, c, out, n);
      case FloatFunction _, Fold _, Scan _, Known _ -> throw notOfIntegers(primitive);
    }
  }

  private static IllegalArgumentException notOfIntegers(Primitive primitive) {
    return new IllegalArgumentException(primitive.symbol() + " is not of single integers");
  }

  private static void operate(Operator operator, long[] a, long[] b, long[] out, int n) {
    switch (operator) {
      case ADD -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] + b[i];
        }
      }
      case SUB -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] - b[i];
        }
      }
      case MUL -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] * b[i];
        }
      }
      case OR -> map((x, y) -> x != 0 || y != 0 ? 1 : 0, a, b, out, n);
      case AND -> map((x, y) -> x != 0 && y != 0 ? 1 : 0, a, b, out, n);
      case BIT_OR -> map((x, y) -> x | y, a, b, out, n);
      case BIT_XOR -> map((x, y) -> x ^ y, a, b, out, n);
      case BIT_AND -> map((x, y) -> x & y, a, b, out, n);
      case SHIFT_LEFT -> map((x, y) -> x << y, a, b, out, n);
      case SHIFT_RIGHT -> map((x, y) -> x >> y, a, b, out, n);
      case DIV -> map((x, y) -> x / divisor(y), a, b, out, n);
    }
  }

  private static void compare(Comparison comparison, long[] a, long[] b, long[] out, int n) {
    switch (comparison) {
      case EQ -> map((x, y) -> x == y ? 1 : 0, a, b, out, n);
      case NE -> map((x, y) -> x != y ? 1 : 0, a, b, out, n);
      case LT -> map((x, y) -> x < y ? 1 : 0, a, b, out, n);
      case LE -> map((x, y) -> x <= y ? 1 : 0, a, b, out, n);
      case GT -> map((x, y) -> x > y ? 1 : 0, a, b, out, n);
      case GE -> map((x, y) -> x >= y ? 1 : 0, a, b, out, n);
    }
  }

  private static void apply(
      Primitive.Function function, long[] a, long[] b, long[] c, long[] out, int n) {
    switch (function) {
      case SELECT -> {
        for (int i = 0; i < n; i++) {
          out[i] = a[i] != 0 ? b[i] : c[i];
        }
      }
      case NEG -> map((x, _) -> -x, a, a, out, n);
      case NOT -> map((x, _) -> x == 0 ? 1 : 0, a, a, out, n);
      case BIT_NOT -> map((x, _) -> ~x, a, a, out, n);
      case ABS -> map((x, _) -> Math.abs(x), a, a, out, n);
      case POW -> map(SpecialFunctions::pow, a, b, out, n);
      case FMOD -> map((x, y) -> x % divisor(y), a, b, out, n);
      case FLOOR_DIV -> map((x, y) -> Math.floorDiv(x, divisor(y)), a, b, out, n);
      case FLOOR_MOD -> map((x, y) -> Math.floorMod(x, divisor(y)), a, b, out, n);
      case FMIN, MINIMUM -> map(Math::min, a, b, out, n);
      case FMAX, MAXIMUM -> map(Math::max, a, b, out, n);
      case GCD -> map(SpecialFunctions::gcd, a, b, out, n);
      case LCM -> map(SpecialFunctions::lcm, a, b, out, n);
      case FLOOR, CEIL, TRUNC, RINT, ISNAN, ISINF, ISFINITE, SIGNBIT, SINGLE, TARGET_CLASS ->
          throw notOfIntegers(function);
    }
  }

  private static long divisor(long divisor) {
    if (divisor == 0) {
      throw new ArithmeticException("integer division by zero");
    }
    return divisor;
  }

  private static void map(LongBinaryOperator f, long[] a, long[] b, long[] out, int n) {
    for (int i = 0; i < n; i++) {
      out[i] = f.applyAsLong(a[i], b[i]);
    }
  }

  @Override
  public void select(
      Comparison compare, long[] a, long[] b, long[] x, long[] y, long[] out, int n) {
    // The results lie apart from all operands.
    compare(compare, a, b, out, n);
    apply(Primitive.Function.SELECT, out, x, y, out, n);
  }

  @Override
  public void start(Fold fold, long[] kept, int at) {
    // Infinities become the largest and the smallest integer.
    kept[at] = (long) fold.start();
  }

  @Override
  public void fold(
      Fold fold, long[] in, int from, int n, long[] kept, int at, int other, long position) {
    long value = kept[at];
    for (int i = from; i < from + n; i++) {
      long x = in[i];
      switch (fold) {
        case SUM -> value += x;
        case PROD -> value *= x;
        case AMAX -> value = Math.max(value, x);
        case AMIN -> value = Math.min(value, x);
        case ANY -> value = value != 0 || x != 0 ? 1 : 0;
        case ALL -> value = value != 0 && x != 0 ? 1 : 0;
        case FIRST_MAX -> value = position + i - from == 0 ? x : Math.max(value, x);
        case FIRST_MIN -> value = position + i - from == 0 ? x : Math.min(value, x);
        case ARGMAX, ARGMIN -> {
          if (value < 0 || (fold == Fold.ARGMAX ? x > kept[other] : x < kept[other])) {
            value = position + i - from;
            kept[other] = x;
          }
        }
      }
    }
    kept[at] = value;
  }

  @Override
  public void scan(Scan scan, long[] in, int from, int n, long[] out, int at) {
    long value = out[at];
    boolean adds = scan == Scan.CUMSUM;
    for (int i = from; i < from + n; i++) {
      value = adds ? value + in[i] : value * in[i];
      out[i] = value;
    }
    out[at] = value;
  }
}
