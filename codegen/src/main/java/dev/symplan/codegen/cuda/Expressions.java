package dev.symplan.codegen.cuda;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableMap;
import java.util.Optional;
import java.util.function.UnaryOperator;

/**
 * Elementwise ops as C++ expressions: {@code {param}} stands for an argument, in the type that is
 * computed in, which is {@code {C}}.
 */
final class Expressions {

  /**
   * @param floats of floats
   * @param integers of integers and bools; empty where the op is for floats
   */
  record Expression(String floats, String integers) {}

  /** Floats and integers alike: names, in {@code aten} where nothing else is said, = expression. */
  private static final String OF_BOTH =
      """
      neg = -{self}
      abs = {self} < 0 ? -{self} : {self} + 0
      relu = {self} < 0 ? 0 : {self}
      relu6 = {self} < 0 ? 0 : {self} > 6 ? 6 : {self}
      square = {self} * {self}
      positive clone contiguous lift_fresh_copy _to_copy to.dtype to.device to.other = {self}
      to.dtype_layout type_as symplan::stage = {self}
      prims::convert_element_type prims::device_put = {a}
      prims::inductor_force_stride_order = {input}
      copy = {src}
      logical_not = {self} == 0
      addcmul = {self} + {value} * {tensor1} * {tensor2}
      add.Tensor add.Scalar = {self} + {alpha} * {other}
      sub.Tensor sub.Scalar = {self} - {alpha} * {other}
      rsub.Tensor rsub.Scalar = {other} - {alpha} * {self}
      mul.Tensor mul.Scalar = {self} * {other}
      eq.Tensor eq.Scalar = {self} == {other}
      ne.Tensor ne.Scalar = {self} != {other}
      lt.Tensor lt.Scalar = {self} < {other}
      le.Tensor le.Scalar = {self} <= {other}
      gt.Tensor gt.Scalar = {self} > {other}
      ge.Tensor ge.Scalar = {self} >= {other}
      logical_and = {self} != 0 && {other} != 0
      logical_or = {self} != 0 || {other} != 0
      logical_xor = ({self} != 0) != ({other} != 0)
      where.self where.ScalarOther where.ScalarSelf where.Scalar = {condition} != 0 ? {self} : {other}
      clamp_min clamp_min.Tensor = {self} < {min} || {min} != {min} ? {min} : {self}
      clamp_max clamp_max.Tensor = {self} > {max} || {max} != {max} ? {max} : {self}
      masked_fill.Scalar masked_fill.Tensor = {mask} != 0 ? {value} : {self}
      """;

  private static final String OF_FLOATS =
      """
      frac = {self} - trunc({self})
      reciprocal = 1 / {self}
      rsqrt = 1 / sqrt({self})
      sigmoid = 1 / (1 + exp(-{self}))
      silu = {self} / (1 + exp(-{self}))
      mish = {self} * tanh({self} > 20 ? {self} : log1p(exp({self})))
      hardsigmoid = ({self} < -3 ? {C}(0) : {self} > 3 ? {C}(6) : {self} + 3) / 6
      hardswish = {self} * fmin(fmax({self} + 3, {C}(0)), {C}(6)) / 6
      gelu = 0.5f * {self} * (1 + erf({self} * {C}(0.70710678118654752440)))
      leaky_relu = {self} > 0 ? {self} : {self} * {negative_slope}
      softplus = {self} * {beta} > {threshold} ? {self} : log1p(exp({self} * {beta})) / {beta}
      sigmoid_backward = {grad_output} * (1 - {output}) * {output}
      tanh_backward = {grad_output} * (1 - {output} * {output})
      silu_backward = {grad_output} / (1 + exp(-{self})) * (1 + {self} * (1 - 1 / (1 + exp(-{self}))))
      threshold_backward = {self} <= {threshold} ? {C}(0) : {grad_output}
      addcdiv = {self} + {value} * ({tensor1} / {tensor2})
      prims::fma = {a} * {b} + {c}
      div.Tensor div.Scalar = {self} / {other}
      atan2 = atan2({self}, {other})
      pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar = pow({self}, {exponent})
      """;

  private static final String OF_INTEGERS =
      """
      bitwise_not = {self!}
      bitwise_and.Tensor bitwise_and.Scalar __and__.Tensor __and__.Scalar = {self} & {other}
      bitwise_or.Tensor bitwise_or.Scalar __or__.Tensor __or__.Scalar = {self} | {other}
      bitwise_xor.Tensor bitwise_xor.Scalar __xor__.Tensor __xor__.Scalar = {self} ^ {other}
      """;

  /** Functions of CUDA's that are called as the op is, of floats. */
  private static final String FUNCTIONS =
      "sqrt exp exp2 expm1 log log2 log10 log1p erf erfc sin cos tan asin acos atan sinh cosh tanh"
          + " asinh acosh atanh lgamma";

  private static final Splitter WORDS = Splitter.on(' ');

  private static final ImmutableMap<String, Expression> TABLE = table();

  private Expressions() {}

  /** {@return the expression of an op, by its full name} */
  static Optional<Expression> find(String op) {
    return Optional.ofNullable(TABLE.get(op));
  }

  private static ImmutableMap<String, Expression> table() {
    var table = ImmutableMap.<String, Expression>builder();
    all(table, OF_BOTH, text -> text, text -> text);
    all(table, OF_FLOATS, text -> text, _ -> "");
    all(table, OF_INTEGERS, _ -> "", text -> text);
    for (var name : WORDS.split(FUNCTIONS)) {
      put(table, name, name + "({self})", "");
    }
    for (var name : WORDS.split("floor ceil trunc")) {
      put(table, name, name + "({self})", "{self}");
    }
    put(table, "round", "rint({self})", "{self}");
    var sign = "({self} > 0) - ({self} < 0)";
    put(table, "sign sgn", sign, sign);
    put(table, "isnan", "{self} != {self}", "0");
    put(table, "isinf", "isinf({self})", "0");
    put(table, "isfinite", "isfinite({self})", "1");
    var ifNan = "{self} != {self} ? {self} : {other} != {other} ? {other} : ";
    put(
        table,
        "maximum max.other",
        ifNan + "fmax({self}, {other})",
        "{self} > {other} ? {self} : {other}");
    put(
        table,
        "minimum min.other",
        ifNan + "fmin({self}, {other})",
        "{self} < {other} ? {self} : {other}");
    return table.buildOrThrow();
  }

  private static void all(
      ImmutableMap.Builder<String, Expression> table,
      String rows,
      UnaryOperator<String> floats,
      UnaryOperator<String> integers) {
    var columns = Splitter.on(" = ").limit(2);
    for (var row : rows.lines().map(columns::splitToList).toList()) {
      put(table, row.getFirst(), floats.apply(row.getLast()), integers.apply(row.getLast()));
    }
  }

  private static void put(
      ImmutableMap.Builder<String, Expression> table,
      String names,
      String floats,
      String integers) {
    for (var name : WORDS.split(names)) {
      table.put(name.contains("::") ? name : "aten::" + name, new Expression(floats, integers));
    }
  }
}
