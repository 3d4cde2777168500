package dev.symplan.codegen.expr;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Sets;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Optional;

/**
 * What expressions are made of.
 *
 * <p>The names are C's where C has such a function. {@code fmin} and {@code fmax} pass a NaN over,
 * {@code minimum} and {@code maximum} keep it.
 */
public enum Primitive {
  SELECT(3),
  OR("||", 1),
  AND("&&", 2),
  BIT_OR("|", 3),
  BIT_XOR("^", 4),
  BIT_AND("&", 5),
  EQ("==", 6),
  NE("!=", 6),
  LT("<", 7),
  LE("<=", 7),
  GT(">", 7),
  GE(">=", 7),
  SHIFT_LEFT("<<", 8),
  SHIFT_RIGHT(">>", 8),
  ADD("+", 9),
  SUB("-", 9),
  MUL("*", 10),
  DIV("/", 10),
  NEG(1),
  NOT(1),
  /** All bits the other way; of bools, the other one. */
  BIT_NOT(1),

  ABS(1),
  FLOOR(1),
  CEIL(1),
  TRUNC(1),
  /** To the nearest integer, ties to even. */
  RINT(1),
  SQRT(1),
  EXP(1),
  EXP2(1),
  EXPM1(1),
  LOG(1),
  LOG2(1),
  LOG10(1),
  LOG1P(1),
  SIN(1),
  COS(1),
  TAN(1),
  ASIN(1),
  ACOS(1),
  ATAN(1),
  SINH(1),
  COSH(1),
  TANH(1),
  ASINH(1),
  ACOSH(1),
  ATANH(1),
  ERF(1),
  ERFC(1),
  ERFCX(1),
  ERFINV(1),
  LGAMMA(1),
  DIGAMMA(1),
  /** The modified Bessel function of order 0. */
  BESSEL_I0(1),
  /** The inverse of the normal distribution function. */
  NDTRI(1),
  ISNAN(1),
  ISINF(1),
  ISFINITE(1),
  SIGNBIT(1),
  /** Rounds to f32, unless f64 is computed in. */
  SINGLE(1),

  POW(2),
  ATAN2(2),
  HYPOT(2),
  COPYSIGN(2),
  NEXTAFTER(2),
  /** The rest of a division that rounds towards 0. */
  FMOD(2),
  FMIN(2),
  FMAX(2),
  MINIMUM(2),
  MAXIMUM(2),
  /** The quotient, rounded down. */
  FLOOR_DIV(2),
  /** Of integers: the rest of the division that rounds down. */
  FLOOR_MOD(2),
  GCD(2),
  LCM(2),
  /** A target, which must be one of so many classes; for others, the run fails. */
  TARGET_CLASS(2),

  /** The sum over a row. */
  SUM(Kind.FOLD, 0),
  PROD(Kind.FOLD, 1),
  /** The largest of a row; a NaN is larger than all. */
  AMAX(Kind.FOLD, Double.NEGATIVE_INFINITY),
  /** The smallest of a row; a NaN is smaller than all. */
  AMIN(Kind.FOLD, Double.POSITIVE_INFINITY),
  ANY(Kind.FOLD, 0),
  ALL(Kind.FOLD, 1),
  /** The first of the largest elements, and with {@link #ARGMAX} where it is. */
  FIRST_MAX(Kind.FOLD, 0),
  ARGMAX(Kind.FOLD, -1),
  FIRST_MIN(Kind.FOLD, 0),
  ARGMIN(Kind.FOLD, -1),
  /** For each element of a row, the sum of those up to it. */
  CUMSUM(Kind.SCAN, 0),
  CUMPROD(Kind.SCAN, 1),

  /** The same; an expression with it is of floats, whatever its operands are. */
  FLOAT(1),
  /** Whether an optional argument is given; a {@link Binding} knows. */
  HAS(1),
  /** Whether floats are computed with; a {@link Binding} knows. */
  FLOATS(0),
  /** The bits of the result's element type. */
  BITS(0),
  /** The largest finite number of the result's element type. */
  LARGEST(0),
  /** The machine epsilon of the type that is computed in: f32 or f64. */
  EPSILON(0),
  /** The number of elements of a row. */
  COUNT(0),
  INF(0),
  NAN(0),
  PI(0);

  private static final ImmutableMap<String, Primitive> FUNCTIONS =
      Arrays.stream(values())
          .filter(primitive -> primitive.precedence() == 0)
          .collect(ImmutableMap.toImmutableMap(Primitive::symbol, p -> p));

  private static final ImmutableMap<String, Primitive> OPERATORS =
      Arrays.stream(values())
          .filter(primitive -> primitive.precedence() > 0)
          .collect(ImmutableMap.toImmutableMap(Primitive::symbol, p -> p));

  private static final ImmutableSet<Primitive> FLOATS_ONLY =
      Sets.immutableEnumSet(
          Sets.union(
              EnumSet.range(SQRT, NDTRI), EnumSet.of(FLOAT, ATAN2, HYPOT, COPYSIGN, NEXTAFTER)));

  /** What values a primitive is of. */
  private enum Kind {
    ELEMENT,
    FOLD,
    SCAN
  }

  private final String symbol;
  private final int arity;
  private final int precedence;
  private final Kind kind;
  private final double start;

  Primitive(int arity) {
    this.symbol = Ascii.toLowerCase(name());
    this.arity = arity;
    this.precedence = 0;
    this.kind = Kind.ELEMENT;
    this.start = 0;
  }

  Primitive(Kind kind, double start) {
    this.symbol = Ascii.toLowerCase(name());
    this.arity = 1;
    this.precedence = 0;
    this.kind = kind;
    this.start = start;
  }

  Primitive(String symbol, int precedence) {
    this.symbol = symbol;
    this.arity = 2;
    this.precedence = precedence;
    this.kind = Kind.ELEMENT;
    this.start = 0;
  }

  /** {@return the function's name or the operator, as in C} */
  public String symbol() {
    return symbol;
  }

  public int arity() {
    return arity;
  }

  /** {@return how strongly an operator between two binds, as in C; 0 for all others} */
  public int precedence() {
    return precedence;
  }

  /** {@return whether it is of floats only} */
  public boolean isOfFloats() {
    return FLOATS_ONLY.contains(this);
  }

  /** {@return whether it makes one value of the values of a row} */
  public boolean folds() {
    return kind == Kind.FOLD;
  }

  /** {@return whether it makes one value for each element of a row of those up to it} */
  public boolean scans() {
    return kind == Kind.SCAN;
  }

  /** {@return what a fold or scan of no elements gives} */
  double start() {
    return start;
  }

  /** {@return whether it is an operator that compares} */
  public boolean compares() {
    return precedence == EQ.precedence || precedence == LT.precedence;
  }

  static Optional<Primitive> function(String name) {
    return Optional.ofNullable(FUNCTIONS.get(name));
  }

  static Optional<Primitive> operator(String symbol) {
    return Optional.ofNullable(OPERATORS.get(symbol));
  }
}
