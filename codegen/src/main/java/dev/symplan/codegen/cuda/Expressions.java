package dev.symplan.codegen.cuda;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableMap;
import java.util.Optional;

/**
 * Elementwise ops as C++ expressions: {@code {param}} stands for an argument, in the type that is
 * computed in.
 */
final class Expressions {

  /**
   * @param floats of floats
   * @param integers of integers and bools; empty where the op is for floats
   */
  record Expression(String floats, String integers) {}

  private static final Splitter WORDS = Splitter.on(' ');

  private static final ImmutableMap<String, Expression> TABLE = table();

  private Expressions() {}

  /** {@return the expression of an op, by its full name} */
  static Optional<Expression> find(String op) {
    return Optional.ofNullable(TABLE.get(op));
  }

  private static ImmutableMap<String, Expression> table() {
    var table = ImmutableMap.<String, Expression>builder();
    unary(table);
    activations(table);
    binary(table);
    selections(table);
    return table.buildKeepingLast();
  }

  private static void both(
      ImmutableMap.Builder<String, Expression> table, String names, String expression) {
    put(table, names, expression, expression);
  }

  private static void put(
      ImmutableMap.Builder<String, Expression> table, String names, String floats, String ints) {
    for (var name : WORDS.split(names)) {
      table.put(name.contains("::") ? name : "aten::" + name, new Expression(floats, ints));
    }
  }

  private static void floats(
      ImmutableMap.Builder<String, Expression> table, String names, String expression) {
    put(table, names, expression, "");
  }

  private static void unary(ImmutableMap.Builder<String, Expression> table) {
    both(table, "neg", "-{self}");
    both(table, "abs", "{self} < 0 ? -{self} : {self} + 0");
    both(table, "relu", "{self} < 0 ? 0 : {self}");
    both(table, "relu6", "{self} < 0 ? 0 : {self} > 6 ? 6 : {self}");
    put(
        table,
        "sign sgn",
        "{self} != {self} ? {self} : ({self} > 0) - ({self} < 0)",
        "({self} > 0) - ({self} < 0)");
    both(table, "square", "{self} * {self}");
    for (var name : WORDS.split("floor ceil trunc")) {
      put(table, name, name + "({self})", "{self}");
    }
    put(table, "round", "rint({self})", "{self}");
    both(
        table,
        "positive clone contiguous lift_fresh_copy _to_copy to.dtype to.device to.other",
        "{self}");
    both(table, "to.dtype_layout type_as symplan::stage", "{self}");
    both(table, "prims::convert_element_type prims::device_put", "{a}");
    both(table, "prims::inductor_force_stride_order", "{input}");
    both(table, "copy", "{src}");
    floats(table, "frac", "{self} - trunc({self})");
    floats(table, "reciprocal", "1 / {self}");
    floats(table, "rsqrt", "1 / sqrt({self})");
    for (var name :
        WORDS.split(
            "sqrt exp exp2 expm1 log log2 log10 log1p erf erfc sin cos tan asin acos atan sinh cosh"
                + " tanh asinh acosh atanh lgamma")) {
      floats(table, name, name + "({self})");
    }
    put(table, "isnan", "{self} != {self}", "0");
    put(table, "isinf", "isinf({self})", "0");
    put(table, "isfinite", "isfinite({self})", "1");
    both(table, "logical_not", "{self} == 0");
    put(table, "bitwise_not", "", "{self!}");
  }

  private static void activations(ImmutableMap.Builder<String, Expression> table) {
    floats(table, "sigmoid", "1 / (1 + exp(-{self}))");
    floats(table, "silu", "{self} / (1 + exp(-{self}))");
    floats(table, "mish", "{self} * tanh({self} > 20 ? {self} : log1p(exp({self})))");
    floats(table, "hardsigmoid", "fmin(fmax({self} + 3, {C}(0)), {C}(6)) / 6");
    floats(table, "hardswish", "{self} * fmin(fmax({self} + 3, {C}(0)), {C}(6)) / 6");
    floats(table, "gelu", "0.5f * {self} * (1 + erf({self} * {C}(0.70710678118654752440)))");
    floats(table, "leaky_relu", "{self} > 0 ? {self} : {self} * {negative_slope}");
    floats(
        table,
        "softplus",
        "{self} * {beta} > {threshold} ? {self} : log1p(exp({self} * {beta})) / {beta}");
    floats(table, "sigmoid_backward", "{grad_output} * (1 - {output}) * {output}");
    floats(table, "tanh_backward", "{grad_output} * (1 - {output} * {output})");
    floats(
        table,
        "silu_backward",
        "{grad_output} / (1 + exp(-{self})) * (1 + {self} * (1 - 1 / (1 + exp(-{self}))))");
    floats(table, "threshold_backward", "{self} <= {threshold} ? {C}(0) : {grad_output}");
    floats(table, "addcdiv", "{self} + {value} * ({tensor1} / {tensor2})");
    both(table, "addcmul", "{self} + {value} * {tensor1} * {tensor2}");
    floats(table, "prims::fma", "{a} * {b} + {c}");
  }

  private static void binary(ImmutableMap.Builder<String, Expression> table) {
    for (var overload : WORDS.split(".Tensor .Scalar")) {
      both(table, "add" + overload, "{self} + {alpha} * {other}");
      both(table, "sub" + overload, "{self} - {alpha} * {other}");
      both(table, "rsub" + overload, "{other} - {alpha} * {self}");
      both(table, "mul" + overload, "{self} * {other}");
      floats(table, "div" + overload, "{self} / {other}");
      both(table, "eq" + overload, "{self} == {other}");
      both(table, "ne" + overload, "{self} != {other}");
      both(table, "lt" + overload, "{self} < {other}");
      both(table, "le" + overload, "{self} <= {other}");
      both(table, "gt" + overload, "{self} > {other}");
      both(table, "ge" + overload, "{self} >= {other}");
      for (var prefix : WORDS.split("bitwise_ __")) {
        var suffix = prefix.equals("__") ? "__" : "";
        put(table, prefix + "and" + suffix + overload, "", "{self} & {other}");
        put(table, prefix + "or" + suffix + overload, "", "{self} | {other}");
        put(table, prefix + "xor" + suffix + overload, "", "{self} ^ {other}");
      }
    }
    both(table, "logical_and", "{self} != 0 && {other} != 0");
    both(table, "logical_or", "{self} != 0 || {other} != 0");
    both(table, "logical_xor", "({self} != 0) != ({other} != 0)");
    put(
        table,
        "maximum max.other",
        "{self} != {self} ? {self} : {other} != {other} ? {other} : fmax({self}, {other})",
        "{self} > {other} ? {self} : {other}");
    put(
        table,
        "minimum min.other",
        "{self} != {self} ? {self} : {other} != {other} ? {other} : fmin({self}, {other})",
        "{self} < {other} ? {self} : {other}");
    floats(table, "atan2", "atan2({self}, {other})");
    for (var overload : WORDS.split("Tensor_Scalar Tensor_Tensor Scalar")) {
      floats(table, "pow." + overload, "pow({self}, {exponent})");
    }
  }

  private static void selections(ImmutableMap.Builder<String, Expression> table) {
    for (var name : WORDS.split("where.self where.ScalarOther where.ScalarSelf where.Scalar")) {
      both(table, name, "{condition} != 0 ? {self} : {other}");
    }
    put(
        table,
        "clamp_min clamp_min.Tensor",
        "{self} < {min} ? {min} : {self}",
        "{self} < {min} ? {min} : {self}");
    both(table, "clamp_max clamp_max.Tensor", "{self} > {max} ? {max} : {self}");
    for (var overload : WORDS.split("Scalar Tensor")) {
      both(table, "masked_fill." + overload, "{mask} != 0 ? {value} : {self}");
    }
  }
}
