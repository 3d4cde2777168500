package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.codegen.expr.Expressions;
import dev.symplan.codegen.expr.Primitive;
import dev.symplan.codegen.expr.Primitive.Comparison;
import dev.symplan.codegen.expr.Primitive.FloatFunction;
import dev.symplan.codegen.expr.Primitive.Fold;
import dev.symplan.codegen.expr.Primitive.Infix;
import dev.symplan.codegen.expr.Primitive.Known;
import dev.symplan.codegen.expr.Primitive.Operator;
import dev.symplan.codegen.expr.Primitive.Scan;
import java.util.function.Function;

/**
 * Expressions as C++, with as few parentheses as need be.
 *
 * @param type the C++ type that is computed in
 * @param params the C++ of a parameter: a name, or a name after a cast
 */
record CudaExpr(String type, Function<String, String> params) {
  /** The quotient of floats, rounded down, of {@code a} and {@code b}. */
  private static final Expr FLOOR_QUOTIENT = Expressions.parse("floor_quotient(a, b)").getFirst();

  /** Whether a quotient of integers that is rounded towards 0 is above the exact one. */
  private static final String ROUNDED_UP = "%1$s %% %2$s != 0 && (%1$s < 0) != (%2$s < 0)";

  private static final String ZERO = Literals.integer(0);

  private static final int ATOM = 13;
  private static final int CAST = 12;
  private static final int PREFIX = 11;
  private static final int TERNARY = 0;

  /**
   * @param precedence how strongly the text's outermost operator binds
   */
  private record Text(String text, int precedence) {
    String within(int least) {
      return precedence < least ? "(" + text + ")" : text;
    }
  }

  /** That a primitive has no CUDA form. */
  static final class NoCudaForm extends RuntimeException {
    private static final long serialVersionUID = 1L;

    NoCudaForm(Primitive primitive) {
      super(primitive.symbol());
    }
  }

  /**
   * {@return the text of an expression, without parentheses around it}
   *
   * @throws NoCudaForm when it has none in this type
   */
  static String print(Expr expr, String type, Function<String, String> params) {
    return new CudaExpr(type, params).text(expr).text();
  }

  private boolean isInteger() {
    return type.equals("long long");
  }

  private Text text(Expr expr) {
    return switch (expr) {
      case Expr.Param(var name) -> new Text(params.apply(name), CAST);
      case Expr.Int(long value) when Math.abs(value) < 1 << 20 && value >= 0 && !isInteger() ->
          new Text(Long.toString(value), ATOM);
      case Expr.Int(long value) ->
          new Text(isInteger() ? Literals.integer(value) : floating(value), ATOM);
      case Expr.Float(double value) ->
          new Text(isInteger() ? Literals.integer((long) value) : floating(value), ATOM);
      case Expr.Text _ -> throw new IllegalStateException("a string is not bound");
      case Expr.Apply apply -> text(apply);
    };
  }

  private String floating(double value) {
    return Literals.floating(value, type.equals("double"));
  }

  private Text text(Expr.Apply apply) {
    var primitive = apply.primitive();
    return switch (primitive) {
      case Infix infix -> infix(infix, apply);
      case Primitive.Function function -> function(function, apply);
      case FloatFunction function when !isInteger() ->
          switch (function) {
            case LGAMMA -> wide("lgamma", apply);
            case DIGAMMA -> wide("digamma", apply);
            case BESSEL_I0 -> wide("bessel_i0", apply);
            case NEXTAFTER -> function("next_number", apply);
            case NDTRI -> function("normcdfinv", apply);
            default -> function(function.symbol(), apply);
          };
      case FloatFunction _, Fold _, Scan _, Known _ -> none(primitive);
    };
  }

  private Text function(Primitive.Function function, Expr.Apply apply) {
    return switch (function) {
      case SELECT ->
          new Text(
              "%s ? %s : %s"
                  .formatted(
                      within(apply, 0, TERNARY + 1),
                      within(apply, 1, TERNARY),
                      within(apply, 2, TERNARY)),
              TERNARY);
      case NEG -> prefix("-", apply);
      case NOT -> new Text(within(apply, 0, 7) + " == 0", Comparison.EQ.precedence());
      case BIT_NOT -> prefix("~", apply);
      case ABS -> {
        var x = within(apply, 0, CAST);
        yield new Text("%1$s < 0 ? -%1$s : %1$s + 0".formatted(x), TERNARY);
      }
      case MINIMUM -> extreme(apply, "fmin", "<");
      case MAXIMUM -> extreme(apply, "fmax", ">");
      case FMIN -> isInteger() ? extreme(apply, "", "<") : function("fmin", apply);
      case FMAX -> isInteger() ? extreme(apply, "", ">") : function("fmax", apply);
      case ISNAN -> {
        var x = within(apply, 0, 7);
        yield new Text(x + " != " + x, Comparison.NE.precedence());
      }
      case TARGET_CLASS -> {
        var x = within(apply, 0, CAST);
        yield new Text(
            "%1$s >= 0 && %1$s < %2$s ? %1$s : (__trap(), %1$s)"
                .formatted(x, within(apply, 1, CAST)),
            TERNARY);
      }
      case SINGLE -> text(apply.args().getFirst());
      case FLOOR_DIV ->
          isInteger()
              ? divided(apply, "-%1$s", "%1$s / %2$s - (" + ROUNDED_UP + ")")
              : text(
                  FLOOR_QUOTIENT.with(
                      ImmutableMap.of("a", apply.args().getFirst(), "b", apply.args().getLast())));
      case FMOD -> isInteger() ? divided(apply, ZERO, "%1$s %% %2$s") : function("fmod", apply);
      case FLOOR_MOD ->
          isInteger()
              ? divided(apply, ZERO, "%1$s %% %2$s + (" + ROUNDED_UP + " ? %2$s : " + ZERO + ")")
              : none(function);
      case FLOOR, CEIL, TRUNC, RINT, ISINF, ISFINITE, SIGNBIT ->
          isInteger() ? none(function) : function(function.symbol(), apply);
      case POW -> function(isInteger() ? "whole_power" : function.symbol(), apply);
      case GCD -> isInteger() ? function("common_divisor", apply) : none(function);
      case LCM -> isInteger() ? function("common_multiple", apply) : none(function);
    };
  }

  /**
   * A quotient or rest of integers, of {@code %1$s} by {@code %2$s}. Divisions by 0 and by -1 may
   * not be defined in C++: the first ends the run, as on the host.
   */
  private Text divided(Expr.Apply apply, String byMinusOne, String byOthers) {
    var text = "%2$s == 0 ? (__trap(), %1$s) : %2$s == -1 ? " + byMinusOne + " : " + byOthers;
    return new Text(text.formatted(within(apply, 0, CAST), within(apply, 1, CAST)), TERNARY);
  }

  /** In f64 always; CUDA's {@code lgammaf} loses digits between -10 and -2. */
  private Text wide(String function, Expr.Apply apply) {
    var x = text(apply.args().getFirst()).text();
    return new Text("(%s)%s((double)(%s))".formatted(type, function, x), CAST);
  }

  private static Text none(Primitive primitive) {
    throw new NoCudaForm(primitive);
  }

  private String within(Expr.Apply apply, int index, int least) {
    return text(apply.args().get(index)).within(least);
  }

  private Text prefix(String operator, Expr.Apply apply) {
    // Two minuses would be another operator.
    return new Text(operator + within(apply, 0, CAST), PREFIX);
  }

  /** Comparisons of comparisons have parentheses, as compilers want them. */
  private Text infix(Infix infix, Expr.Apply apply) {
    int own = infix.precedence();
    if (isInteger() && infix == Operator.DIV) {
      return divided(apply, "-%1$s", "%1$s / %2$s");
    }
    boolean compares = infix instanceof Comparison;
    int least = compares ? Operator.SHIFT_LEFT.precedence() : own;
    return new Text(
        "%s %s %s"
            .formatted(
                within(apply, 0, least),
                infix.symbol(),
                within(apply, 1, compares ? least : own + 1)),
        own);
  }

  /** Functions are overloaded: numbers must have the type. */
  private Text function(String name, Expr.Apply apply) {
    var args =
        apply.args().stream()
            .map(
                arg ->
                    arg instanceof Expr.Int(long value)
                        ? isInteger() ? Literals.integer(value) : "%s(%s)".formatted(type, value)
                        : text(arg).text())
            .toList();
    return new Text("%s(%s)".formatted(name, String.join(", ", args)), ATOM);
  }

  /** A NaN is larger and smaller than all. */
  private Text extreme(Expr.Apply apply, String function, String compares) {
    var a = within(apply, 0, CAST);
    var b = within(apply, 1, CAST);
    if (isInteger()) {
      return new Text("%1$s %3$s %2$s ? %1$s : %2$s".formatted(a, b, compares), TERNARY);
    }
    boolean isNumber =
        apply.args().getLast() instanceof Expr.Float(double bound) && !Double.isNaN(bound);
    return new Text(
        "%1$s != %1$s ? %1$s : %2$s%3$s"
            .formatted(
                a,
                isNumber ? "" : "%1$s != %1$s ? %1$s : ".formatted(b),
                function(function, apply).text()),
        TERNARY);
  }
}
