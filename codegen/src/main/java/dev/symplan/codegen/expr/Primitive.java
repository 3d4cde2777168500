package dev.symplan.codegen.expr;

import com.google.common.base.Ascii;

/**
 * The building blocks of expressions.
 *
 * <p>The names are C's where C has such a function. {@code fmin} and {@code fmax} pass a NaN over,
 * {@code minimum} and {@code maximum} keep it.
 */
public sealed interface Primitive {

  /** The name in Java. */
  String name();

  /** {@return the function's name or the operator, as in C} */
  default String symbol() {
    return Ascii.toLowerCase(name());
  }

  default int arity() {
    return 1;
  }

  /** {@return whether its value depends on others of a row} */
  default boolean isByRow() {
    return this instanceof Fold || this instanceof Scan;
  }

  /** An operator between two. */
  sealed interface Infix extends Primitive {

    /** {@return how strongly it binds, as in C} */
    int precedence();

    @Override
    default int arity() {
      return 2;
    }
  }

  enum Operator implements Infix {
    OR("||", 1),
    AND("&&", 2),
    BIT_OR("|", 3),
    BIT_XOR("^", 4),
    BIT_AND("&", 5),
    SHIFT_LEFT("<<", 8),
    SHIFT_RIGHT(">>", 8),
    ADD("+", 9),
    SUB("-", 9),
    MUL("*", 10),
    DIV("/", 10);

    private final String symbol;
    private final int precedence;

    Operator(String symbol, int precedence) {
      this.symbol = symbol;
      this.precedence = precedence;
    }

    @Override
    public String symbol() {
      return symbol;
    }

    @Override
    public int precedence() {
      return precedence;
    }
  }

  enum Comparison implements Infix {
    EQ("=="),
    NE("!="),
    LT("<"),
    LE("<="),
    GT(">"),
    GE(">=");

    private final String symbol;

    Comparison(String symbol) {
      this.symbol = symbol;
    }

    @Override
    public String symbol() {
      return symbol;
    }

    @Override
    public int precedence() {
      return this == EQ || this == NE ? 6 : 7;
    }
  }

  /** Functions and prefixes of values of any type. */
  enum Function implements Primitive {
    SELECT(3),
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
    ISNAN(1),
    ISINF(1),
    ISFINITE(1),
    SIGNBIT(1),
    /** Rounds to f32, unless f64 is computed in. */
    SINGLE(1),
    POW(2),
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
    TARGET_CLASS(2);

    private final int arity;

    Function(int arity) {
      this.arity = arity;
    }

    @Override
    public int arity() {
      return arity;
    }
  }

  /** Functions of floats only: an expression with one is of floats, whatever its operands are. */
  enum FloatFunction implements Primitive {
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
    ATAN2(2),
    HYPOT(2),
    COPYSIGN(2),
    NEXTAFTER(2),
    /** The same, as a float. */
    FLOAT(1);

    private final int arity;

    FloatFunction(int arity) {
      this.arity = arity;
    }

    @Override
    public int arity() {
      return arity;
    }
  }

  /** Combines the values of a row into one value. */
  enum Fold implements Primitive {
    SUM(0),
    PROD(1),
    /** The largest of a row; a NaN is larger than all. */
    AMAX(Double.NEGATIVE_INFINITY),
    /** The smallest of a row; a NaN is smaller than all. */
    AMIN(Double.POSITIVE_INFINITY),
    ANY(0),
    ALL(1),
    /** The first of the largest elements, and with {@link #ARGMAX} where it is. */
    FIRST_MAX(0),
    ARGMAX(-1),
    FIRST_MIN(0),
    ARGMIN(-1);

    private final double start;

    Fold(double start) {
      this.start = start;
    }

    /** {@return the result for no elements} */
    double start() {
      return start;
    }
  }

  /** Gives each element of a row one value, from the elements up to it. */
  enum Scan implements Primitive {
    CUMSUM(Fold.SUM),
    CUMPROD(Fold.PROD);

    private final Fold fold;

    Scan(Fold fold) {
      this.fold = fold;
    }

    /** {@return the fold that gives its last value} */
    public Fold fold() {
      return fold;
    }
  }

  /** Constants, which a {@link Binding} knows. */
  enum Known implements Primitive {
    /** Whether an optional argument is given. */
    HAS,
    /** Whether floats are computed with. */
    FLOATS,
    /** The bits of the result's element type. */
    BITS,
    /** The largest finite number of the result's element type. */
    LARGEST,
    /** The machine epsilon of the type that is computed in: f32 or f64. */
    EPSILON,
    /** The number of elements of a row. */
    COUNT,
    INF,
    NAN,
    PI;

    @Override
    public int arity() {
      return this == HAS ? 1 : 0;
    }
  }
}
