package dev.symplan.codegen.expr;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.expr.Primitive.Comparison;
import dev.symplan.codegen.expr.Primitive.Fold;
import dev.symplan.codegen.expr.Primitive.Function;
import dev.symplan.codegen.expr.Primitive.Operator;

/**
 * Primitives of unsigned 64-bit integers in terms of those of signed ones, which have the same
 * bits. With the highest bit flipped, unsigned numbers are in the order of signed ones: Warren,
 * <i>Hacker's Delight</i>, 2nd edition, sections 2-12 and 9-3.
 */
final class UnsignedForm {
  private static final Expr HIGHEST_BIT = new Expr.Int(Long.MIN_VALUE);
  private static final Expr OTHER_BITS = new Expr.Int(Long.MAX_VALUE);
  private static final Expr ZERO = new Expr.Int(0);
  private static final Expr ONE = new Expr.Int(1);

  private UnsignedForm() {}

  /**
   * {@return a primitive of unsigned numbers}
   *
   * @throws IllegalArgumentException when it has no such form
   */
  static Expr of(Primitive primitive, ImmutableList<Expr> args) {
    var a = args.isEmpty() ? ZERO : args.getFirst();
    var b = args.isEmpty() ? ZERO : args.getLast();
    return switch (primitive) {
      case Comparison comparison -> compared(comparison, a, b);
      case Operator operator ->
          switch (operator) {
            case DIV -> quotient(a, b);
            case SHIFT_RIGHT -> shiftedRight(a, b);
            case OR, AND, BIT_OR, BIT_XOR, BIT_AND, SHIFT_LEFT, ADD, SUB, MUL ->
                new Expr.Apply(operator, args);
          };
      case Function function -> function(function, args, a, b);
      case Fold fold ->
          switch (fold) {
            case AMAX, AMIN, FIRST_MAX, FIRST_MIN -> flipped(Expr.of(fold, flipped(a)));
            case ARGMAX, ARGMIN -> Expr.of(fold, flipped(a));
            case SUM, PROD, ANY, ALL -> new Expr.Apply(fold, args);
          };
      case Primitive.Scan _, Primitive.FloatFunction _, Primitive.Known _ ->
          new Expr.Apply(primitive, args);
    };
  }

  private static Expr function(Function function, ImmutableList<Expr> args, Expr a, Expr b) {
    return switch (function) {
      case ABS -> a;
      case FMIN, MINIMUM -> Expr.of(Function.SELECT, compared(Comparison.LT, b, a), b, a);
      case FMAX, MAXIMUM -> Expr.of(Function.SELECT, compared(Comparison.GT, b, a), b, a);
      case FLOOR_DIV -> quotient(a, b);
      case FMOD, FLOOR_MOD -> Expr.of(Operator.SUB, a, Expr.of(Operator.MUL, quotient(a, b), b));
      case POW -> power(a, b);
      case GCD, LCM ->
          throw new IllegalArgumentException(function.symbol() + " is not of unsigned integers");
      case SELECT, NEG, NOT, BIT_NOT, FLOOR, CEIL, TRUNC, RINT, ISNAN, ISINF, ISFINITE ->
          new Expr.Apply(function, args);
      case SIGNBIT, SINGLE, TARGET_CLASS -> new Expr.Apply(function, args);
    };
  }

  private static Expr flipped(Expr expr) {
    return Expr.of(Operator.BIT_XOR, expr, HIGHEST_BIT);
  }

  private static Expr compared(Comparison comparison, Expr a, Expr b) {
    return switch (comparison) {
      case EQ, NE -> Expr.of(comparison, a, b);
      case LT, LE, GT, GE -> Expr.of(comparison, flipped(a), flipped(b));
    };
  }

  private static Expr halved(Expr a) {
    return Expr.of(Operator.BIT_AND, Expr.of(Operator.SHIFT_RIGHT, a, ONE), OTHER_BITS);
  }

  private static Expr shiftedRight(Expr a, Expr by) {
    return Expr.of(
        Function.SELECT,
        by,
        Expr.of(Operator.SHIFT_RIGHT, halved(a), Expr.of(Operator.SUB, by, ONE)),
        a);
  }

  /** Twice the quotient of half of a number is the quotient, or less by one. */
  private static Expr quotient(Expr a, Expr b) {
    var most = Expr.of(Operator.SHIFT_LEFT, Expr.of(Operator.DIV, halved(a), b), ONE);
    var rest = Expr.of(Operator.SUB, a, Expr.of(Operator.MUL, most, b));
    return Expr.of(
        Function.SELECT,
        Expr.of(Comparison.LT, b, ZERO),
        compared(Comparison.GE, a, b),
        Expr.of(Operator.ADD, most, compared(Comparison.GE, rest, b)));
  }

  /** The square of the power of half of the exponent, and once more if the exponent is odd. */
  private static Expr power(Expr base, Expr exponent) {
    var root = Expr.of(Function.POW, base, halved(exponent));
    return Expr.of(
        Operator.MUL,
        Expr.of(Operator.MUL, root, root),
        Expr.of(Function.SELECT, Expr.of(Operator.BIT_AND, exponent, ONE), base, ONE));
  }
}
