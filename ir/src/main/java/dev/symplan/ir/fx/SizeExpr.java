package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import java.util.Arrays;
import java.util.Optional;
import java.util.function.ToLongFunction;

/** A symbolic size, or a condition on sizes, as PyTorch computes them with sympy. */
public sealed interface SizeExpr {

  record Int(long value) implements SizeExpr {}

  record Bool(boolean value) implements SizeExpr {}

  /** A size without a value of its own, as {@code s77}. */
  record Symbol(String name) implements SizeExpr {}

  record Negative(SizeExpr operand) implements SizeExpr {}

  record Binary(Operator operator, SizeExpr left, SizeExpr right) implements SizeExpr {}

  /** A text where a size should be, but that is not one. */
  record Malformed(String text) implements SizeExpr {}

  /** An operator on integers. Arithmetic is exact: it throws {@link ArithmeticException}. */
  enum Operator {
    LT("<", Binding.RELATION, "Lt", "StrictLessThan"),
    LE("<=", Binding.RELATION, "Le", "LessThan"),
    GT(">", Binding.RELATION, "Gt", "StrictGreaterThan"),
    GE(">=", Binding.RELATION, "Ge", "GreaterThan"),
    EQ("==", Binding.RELATION, "Eq", "Equality"),
    NE("!=", Binding.RELATION, "Ne", "Unequality"),
    ADD("+", Binding.SUM),
    SUBTRACT("-", Binding.SUM),
    MULTIPLY("*", Binding.PRODUCT),
    /** Of a number and one that divides it. */
    DIVIDE("/", Binding.PRODUCT, "CleanDiv", "IntTrueDiv"),
    FLOOR_DIVIDE("//", Binding.PRODUCT, "FloorDiv"),
    MODULO("%", Binding.PRODUCT, "Mod", "PythonMod"),
    POWER("**", Binding.PRODUCT),
    MAX("Max", Binding.ATOM, "Max"),
    MIN("Min", Binding.ATOM, "Min");

    private final String text;
    private final Binding binding;
    private final ImmutableList<String> functions;

    /**
     * @param functions its names in sympy and in PyTorch's torch/utils/_sympy/functions.py
     */
    Operator(String text, Binding binding, String... functions) {
      this.text = text;
      this.binding = binding;
      this.functions = ImmutableList.copyOf(functions);
    }

    /** {@return the operator with this sign, for example {@code //}} */
    static Operator ofSign(String sign) {
      return Arrays.stream(values())
          .filter(operator -> operator.text.equals(sign))
          .findFirst()
          .orElseThrow(() -> new IllegalArgumentException("sizes have no operator " + sign));
    }

    /** {@return the operator that a function is, for example {@code FloorDiv}} */
    static Optional<Operator> ofFunction(String name) {
      return Arrays.stream(values())
          .filter(operator -> operator.functions.contains(name))
          .findFirst();
    }

    boolean compares() {
      return binding == Binding.RELATION;
    }

    /** {@return an integer, or whether a comparison holds} */
    Arg apply(long a, long b) {
      return switch (this) {
        case LT -> new Arg.Bool(a < b);
        case LE -> new Arg.Bool(a <= b);
        case GT -> new Arg.Bool(a > b);
        case GE -> new Arg.Bool(a >= b);
        case EQ -> new Arg.Bool(a == b);
        case NE -> new Arg.Bool(a != b);
        case ADD -> new Arg.Int(Math.addExact(a, b));
        case SUBTRACT -> new Arg.Int(Math.subtractExact(a, b));
        case MULTIPLY -> new Arg.Int(Math.multiplyExact(a, b));
        case DIVIDE -> new Arg.Int(exactQuotient(a, b));
        case FLOOR_DIVIDE -> new Arg.Int(Math.floorDiv(a, b));
        case MODULO -> new Arg.Int(Math.floorMod(a, b));
        case POWER -> new Arg.Int(power(a, b));
        case MAX -> new Arg.Int(Math.max(a, b));
        case MIN -> new Arg.Int(Math.min(a, b));
      };
    }

    private static long exactQuotient(long a, long b) {
      if (b == 0 || a % b != 0) {
        throw new ArithmeticException("%s / %s is not an integer".formatted(a, b));
      }
      return a / b;
    }

    private static long power(long base, long exponent) {
      if (exponent < 0 || exponent > 62) {
        throw new ArithmeticException("exponent " + exponent);
      }
      return Math.powExact(base, (int) exponent);
    }

    @Override
    public String toString() {
      return text;
    }
  }

  /** How tightly an operator binds. */
  enum Binding {
    RELATION,
    SUM,
    PRODUCT,
    ATOM
  }

  /**
   * {@return the value: an integer, or whether a condition holds}
   *
   * @param symbols gives the values of symbols
   * @throws IllegalArgumentException when a part is malformed, or a condition stands for a size
   * @throws ArithmeticException when a value does not fit 64 bits or is not an integer
   */
  default Arg evaluate(ToLongFunction<String> symbols) {
    return switch (this) {
      case Int(long value) -> new Arg.Int(value);
      case Bool(boolean value) -> new Arg.Bool(value);
      case Symbol(String name) -> new Arg.Int(symbols.applyAsLong(name));
      case Negative(SizeExpr operand) -> new Arg.Int(Math.negateExact(operand.size(symbols)));
      case Binary(Operator operator, SizeExpr left, SizeExpr right) ->
          operator.apply(left.size(symbols), right.size(symbols));
      case Malformed(String text) ->
          throw new IllegalArgumentException("'%s' is not a size".formatted(text));
    };
  }

  /** {@return the value of an expression that is not a condition; throws as {@link #evaluate}} */
  default long size(ToLongFunction<String> symbols) {
    if (evaluate(symbols) instanceof Arg.Int(long value)) {
      return value;
    }
    throw new IllegalArgumentException("the condition '%s' is not a size".formatted(text()));
  }

  /** {@return whether the symbol is in it} */
  default boolean mentions(String symbol) {
    return switch (this) {
      case Symbol(String name) -> name.equals(symbol);
      case Negative(SizeExpr operand) -> operand.mentions(symbol);
      case Binary(_, SizeExpr left, SizeExpr right) ->
          left.mentions(symbol) || right.mentions(symbol);
      case Int _, Bool _, Malformed _ -> false;
    };
  }

  /** {@return the expression as sympy prints it: {@code 4*s77 + 1}} */
  default String text() {
    return switch (this) {
      case Int(long value) -> Long.toString(value);
      case Bool(boolean value) -> value ? "True" : "False";
      case Symbol(String name) -> name;
      case Negative(SizeExpr operand) -> "-" + operand.in(Binding.ATOM);
      case Malformed(String text) -> text;
      case Binary(Operator operator, SizeExpr left, SizeExpr right) ->
          switch (operator) {
            case FLOOR_DIVIDE -> "FloorDiv(%s, %s)".formatted(left.text(), right.text());
            case MODULO -> "Mod(%s, %s)".formatted(left.text(), right.text());
            case MAX, MIN -> "%s(%s, %s)".formatted(operator, left.text(), right.text());
            case POWER -> left.in(Binding.ATOM) + operator + right.in(Binding.ATOM);
            case MULTIPLY, DIVIDE ->
                left.in(Binding.PRODUCT)
                    + operator
                    + right.in(operator == Operator.DIVIDE ? Binding.ATOM : Binding.PRODUCT);
            case ADD, SUBTRACT, LT, LE, GT, GE, EQ, NE ->
                "%s %s %s".formatted(left.in(Binding.SUM), operator, right.in(Binding.SUM));
          };
    };
  }

  private String in(Binding context) {
    var own =
        switch (this) {
          case Binary(Operator operator, _, _)
              when operator != Operator.FLOOR_DIVIDE && operator != Operator.MODULO ->
              operator.binding;
          case Negative _ -> Binding.PRODUCT;
          case Int(long value) -> value < 0 ? Binding.PRODUCT : Binding.ATOM;
          case Binary _, Bool _, Symbol _, Malformed _ -> Binding.ATOM;
        };
    return own.compareTo(context) < 0 ? "(" + text() + ")" : text();
  }
}
