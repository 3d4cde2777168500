package dev.symplan.codegen.expr;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.codegen.expr.Primitive.Comparison;
import dev.symplan.codegen.expr.Primitive.FloatFunction;
import dev.symplan.codegen.expr.Primitive.Fold;
import dev.symplan.codegen.expr.Primitive.Known;
import dev.symplan.codegen.expr.Primitive.Operator;
import dev.symplan.codegen.expr.Primitive.Scan;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.Promotion;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.Set;

/**
 * Expressions for one call: parameters are tensors, and all that constants and types decide is
 * decided.
 *
 * <p>As in PyTorch, operands of other types are rounded to that of the result first, or to the type
 * that they are compared in; 16-bit floats are computed with in f32 at least, integers in 64 bits.
 *
 * @param results one for each result of the op
 * @param computedIn the type that operands are rounded to: a float type, or i64
 */
public record Binding(ImmutableList<Expr> results, DType computedIn) {

  /**
   * {@return an op's expressions, for a call}
   *
   * @throws IllegalArgumentException when an argument is not one that the op can be computed with
   */
  public static Binding of(ImmutableList<Expr> exprs, Call call) {
    var params = ImmutableSet.copyOf(params(exprs));
    var computedIn =
        exprs.stream().anyMatch(Binding::isByRow) ? rowType(call) : elementType(params, call);
    var bound = bind(exprs, call, computedIn);
    return bound.isFloat() || bound.results.stream().noneMatch(Binding::isOfFloats)
        ? bound
        : bind(exprs, call, DType.F32);
  }

  /**
   * {@return expressions for a call, with constants in f64 until the values are computed}
   *
   * @param computedIn a float type
   * @throws IllegalArgumentException when an argument is not one that the op can be computed with
   */
  public static Binding exact(ImmutableList<Expr> exprs, Call call, DType computedIn) {
    return new Binding(bind(exprs, call, DType.F64).results, computedIn);
  }

  private static Binding bind(ImmutableList<Expr> exprs, Call call, DType computedIn) {
    var binder = new Binder(call, computedIn);
    return new Binding(
        exprs.stream().map(binder::bind).collect(ImmutableList.toImmutableList()), computedIn);
  }

  private static boolean isOfFloats(Expr expr) {
    return switch (expr) {
      case Expr.Apply(var primitive, var args) ->
          primitive instanceof FloatFunction || args.stream().anyMatch(Binding::isOfFloats);
      case Expr.Float _ -> true;
      case Expr.Param _, Expr.Int _, Expr.Text _ -> false;
    };
  }

  /** {@return whether an expression is of a whole row, rather than of one element} */
  public static boolean isByRow(Expr expr) {
    return switch (expr) {
      case Expr.Apply(var primitive, var args) ->
          primitive.isByRow() || args.stream().anyMatch(Binding::isByRow);
      case Expr.Param _, Expr.Int _, Expr.Float _, Expr.Text _ -> false;
    };
  }

  /** {@return the names of the parameters in expressions} */
  public static Set<String> params(Iterable<Expr> exprs) {
    var params = new LinkedHashSet<String>();
    exprs.forEach(expr -> addParams(expr, params));
    return params;
  }

  private static void addParams(Expr expr, Set<String> params) {
    switch (expr) {
      case Expr.Param(var name) -> params.add(name);
      case Expr.Apply(var _, var args) -> args.forEach(arg -> addParams(arg, params));
      case Expr.Int _, Expr.Float _, Expr.Text _ -> {}
    }
  }

  /** {@return the parameters that are left, which are tensors} */
  public Set<String> params() {
    return params(results);
  }

  /** {@return whether floats are computed with, rather than integers} */
  public boolean isFloat() {
    return computedIn.isFloat();
  }

  /** An argument {@code dtype} says what operands are converted to before anything else. */
  private static DType rowType(Call call) {
    if (call.hasParam("dtype")
        && call.tensor("dtype").isEmpty()
        && call.constant("dtype") instanceof Arg.Dtype(DType wanted)
        && wanted.kind() != DType.Kind.COMPLEX) {
      return wanted.isFloat() ? wanted : DType.I64;
    }
    var dtypes = call.dtypes();
    return dtypes.contains(DType.F64)
        ? DType.F64
        : dtypes.stream().anyMatch(dtype -> dtype.isFloat() || dtype.kind() == DType.Kind.COMPLEX)
            ? DType.F32
            : DType.I64;
  }

  private static DType elementType(Set<String> params, Call call) {
    if (call.result().isFloat()) {
      return call.result();
    }
    boolean floats = false;
    var tensors = new ArrayList<TensorType>();
    for (var param : params) {
      var tensor = call.hasParam(param) ? call.tensor(param) : Optional.<TensorType>empty();
      tensor.ifPresent(tensors::add);
      floats |=
          tensor.isPresent()
              ? tensor.get().dtype().isFloat()
              : call.hasParam(param) && call.constant(param) instanceof Arg.Float;
    }
    return floats && call.result() == DType.BOOL ? Promotion.ofFloats(tensors) : DType.I64;
  }

  private record Binder(Call call, DType type) {

    Expr bind(Expr expr) {
      return switch (expr) {
        case Expr.Param(var name) -> call.tensor(name).isPresent() ? expr : constant(name);
        case Expr.Int _, Expr.Float _, Expr.Text _ -> expr;
        case Expr.Apply(var primitive, var args) -> bind(primitive, args);
      };
    }

    private Expr bind(Primitive primitive, ImmutableList<Expr> args) {
      return switch (primitive) {
        case Known known -> known(known, args);
        case Operator operator when operator == Operator.AND || operator == Operator.OR ->
            connected(operator, args);
        case Primitive.Function function when function == Primitive.Function.SELECT -> {
          var condition = bind(args.getFirst());
          yield truth(condition)
              .map(is -> bind(args.get(is ? 1 : 2)))
              .orElseGet(
                  () -> Expr.of(function, condition, bind(args.get(1)), bind(args.getLast())));
        }
        case Primitive.Infix _, Primitive.Function _, FloatFunction _, Fold _, Scan _ ->
            simplified(
                primitive, args.stream().map(this::bind).collect(ImmutableList.toImmutableList()));
      };
    }

    private Expr known(Known known, ImmutableList<Expr> args) {
      return switch (known) {
        case HAS ->
            new Expr.Int(args.getFirst() instanceof Expr.Param(var name) && isGiven(name) ? 1 : 0);
        case FLOATS -> new Expr.Int(type.isFloat() ? 1 : 0);
        case BITS -> new Expr.Int((long) call.result().bytes() * Byte.SIZE);
        case LARGEST -> new Expr.Float(Rounding.largest(call.result()));
        case EPSILON -> new Expr.Float(type == DType.F64 ? Math.ulp(1.0) : (double) Math.ulp(1f));
        case COUNT ->
            type.isFloat() ? new Expr.Float(call.rowElements()) : new Expr.Int(call.rowElements());
        case INF -> new Expr.Float(Double.POSITIVE_INFINITY);
        case NAN -> new Expr.Float(Double.NaN);
        case PI -> new Expr.Float(Math.PI);
      };
    }

    /** The right side may be missing where the left side decides. */
    private Expr connected(Operator operator, ImmutableList<Expr> args) {
      boolean decides = operator == Operator.OR;
      var left = bind(args.getFirst());
      if (truth(left).isPresent()) {
        return truth(left).get() == decides ? new Expr.Int(decides ? 1 : 0) : bind(args.getLast());
      }
      var right = bind(args.getLast());
      return truth(right)
          .map(is -> is == decides ? right : left)
          .orElseGet(() -> Expr.of(operator, left, right));
    }

    private static Optional<Boolean> truth(Expr expr) {
      return switch (expr) {
        case Expr.Int(long value) -> Optional.of(value != 0);
        case Expr.Float(double value) -> Optional.of(value != 0);
        case Expr.Param _, Expr.Text _, Expr.Apply _ -> Optional.empty();
      };
    }

    private Expr simplified(Primitive primitive, ImmutableList<Expr> args) {
      var first = args.getFirst();
      if (primitive == Comparison.EQ && first instanceof Expr.Text) {
        return new Expr.Int(first.equals(args.getLast()) ? 1 : 0);
      } else if (primitive == Operator.MUL && is(first, 1)) {
        return args.getLast();
      } else if (primitive == Operator.MUL && is(args.getLast(), 1)) {
        return first;
      } else if (primitive == Primitive.Function.POW) {
        return power(first, args.getLast());
      } else if (primitive == FloatFunction.FLOAT && type.isFloat()) {
        return first;
      } else if (primitive == Primitive.Function.SINGLE && type == DType.F64) {
        return first;
      } else if (primitive == Primitive.Function.BIT_NOT && call.result() == DType.BOOL) {
        return applied(Primitive.Function.NOT, args);
      }
      return primitive instanceof Primitive.Function function && !type.isFloat()
          ? ofIntegers(function, args)
          : applied(primitive, args);
    }

    /** Questions about floats have one answer for integers. */
    private Expr ofIntegers(Primitive.Function function, ImmutableList<Expr> args) {
      return switch (function) {
        case FLOOR, CEIL, TRUNC, RINT, SINGLE -> args.getFirst();
        case ISNAN, ISINF -> new Expr.Int(0);
        case ISFINITE -> new Expr.Int(1);
        case SIGNBIT -> applied(Comparison.LT, ImmutableList.of(args.getFirst(), new Expr.Int(0)));
        case SELECT, NEG, NOT, BIT_NOT, ABS, POW, FMOD, FMIN, FMAX, MINIMUM, MAXIMUM ->
            applied(function, args);
        case FLOOR_DIV, FLOOR_MOD, GCD, LCM, TARGET_CLASS -> applied(function, args);
      };
    }

    /**
     * As PyTorch does, without {@code pow} where the exponent is one of a few: the root of -inf is
     * a NaN then.
     */
    private Expr power(Expr base, Expr exponent) {
      if (is(exponent, 1)) {
        return base;
      } else if (is(exponent, 2)) {
        return square(base);
      } else if (is(exponent, 3)) {
        return applied(Operator.MUL, ImmutableList.of(square(base), base));
      } else if (type.isFloat() && is(exponent, 0.5)) {
        return root(base);
      } else if (type.isFloat() && is(exponent, -0.5)) {
        return reciprocal(root(base));
      } else if (type.isFloat() && is(exponent, -1)) {
        return reciprocal(base);
      } else if (type.isFloat() && is(exponent, -2)) {
        return reciprocal(square(base));
      }
      return applied(Primitive.Function.POW, ImmutableList.of(base, exponent));
    }

    private Expr square(Expr base) {
      return applied(Operator.MUL, ImmutableList.of(base, base));
    }

    private Expr root(Expr base) {
      return applied(FloatFunction.SQRT, ImmutableList.of(base));
    }

    private Expr reciprocal(Expr base) {
      return applied(Operator.DIV, ImmutableList.of(new Expr.Int(1), base));
    }

    private static boolean is(Expr expr, double number) {
      return expr instanceof Expr.Int(long value)
          ? value == number
          : expr instanceof Expr.Float(double real) && real == number;
    }

    private Expr applied(Primitive primitive, ImmutableList<Expr> args) {
      return isUnsigned()
          ? constantParts(UnsignedForm.of(primitive, args))
          : constantOr(new Expr.Apply(primitive, args));
    }

    private boolean isUnsigned() {
      return !type.isFloat() && call.dtypes().contains(DType.U64);
    }

    private Expr constantParts(Expr expr) {
      return expr instanceof Expr.Apply(var primitive, var args)
          ? constantOr(
              new Expr.Apply(
                  primitive,
                  args.stream().map(this::constantParts).collect(ImmutableList.toImmutableList())))
          : expr;
    }

    private Expr constantOr(Expr.Apply apply) {
      boolean constant =
          !(apply.primitive() instanceof FloatFunction && !type.isFloat())
              && apply.args().stream().allMatch(arg -> truth(arg).isPresent())
              && !apply.primitive().isByRow();
      return constant ? Blocks.fold(apply, type) : apply;
    }

    private boolean isGiven(String param) {
      return call.hasParam(param)
          && (call.tensor(param).isPresent() || !(call.constant(param) instanceof Arg.None));
    }

    /** Arithmetic takes a number in f32 even where tensors are shorter; comparing does not. */
    private Expr constant(String param) {
      return switch (call.constant(param)) {
        case Arg.Int(long value) -> number(value);
        case Arg.Float(double value) ->
            type.isFloat()
                ? new Expr.Float(
                    Rounding.round(
                        value, call.result().isFloat() && type != DType.F64 ? DType.F32 : type))
                : new Expr.Int((long) value);
        case Arg.Bool(boolean value) -> new Expr.Int(value ? 1 : 0);
        case Arg.Str(String value) -> new Expr.Text(value);
        case Arg.Ref _, Arg.Dtype _, Arg.Symbol _, Arg.Device _, Arg.Seq _, Arg.None _ ->
            throw new IllegalArgumentException(
                "'%s' is not a number: %s".formatted(param, call.constant(param)));
      };
    }

    private Expr number(long value) {
      return type.isFloat()
          ? new Expr.Float(
              Rounding.round(
                  (double) value, call.result().isFloat() && type != DType.F64 ? DType.F32 : type))
          : new Expr.Int(value);
    }
  }
}
