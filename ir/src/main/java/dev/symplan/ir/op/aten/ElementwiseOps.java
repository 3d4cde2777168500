package dev.symplan.ir.op.aten;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/** Ops whose result elements depend on the operands' elements at the same place. */
final class ElementwiseOps {

  /** The element type of the result, from the promoted type of the operands. */
  private enum Gives {
    /** The promoted type. */
    SAME(d -> d),
    /** A float type: integers compute in f32. */
    FLOAT(Types::floating),
    BOOL(d -> DType.BOOL);

    private final UnaryOperator<DType> map;

    Gives(UnaryOperator<DType> map) {
      this.map = map;
    }
  }

  private ElementwiseOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
            unary(
                Gives.SAME,
                "neg",
                "abs",
                "relu",
                "sign",
                "square",
                "floor",
                "ceil",
                "round",
                "trunc",
                "bitwise_not",
                "positive",
                "silu",
                "hardswish",
                "hardsigmoid",
                "relu6",
                "selu",
                "mish"),
            unary(
                Gives.FLOAT,
                "exp",
                "exp2",
                "expm1",
                "log",
                "log2",
                "log10",
                "log1p",
                "sqrt",
                "rsqrt",
                "sin",
                "cos",
                "tan",
                "asin",
                "acos",
                "atan",
                "sinh",
                "cosh",
                "tanh",
                "asinh",
                "acosh",
                "atanh",
                "sigmoid",
                "erf",
                "erfc",
                "reciprocal",
                "log_sigmoid"),
            unary(Gives.BOOL, "logical_not", "isnan", "isinf", "isfinite", "signbit"),
            binary(Gives.SAME, "add", ", *, Scalar alpha=1"),
            binary(Gives.SAME, "sub", ", *, Scalar alpha=1"),
            binary(Gives.SAME, "rsub", ", *, Scalar alpha=1"),
            reversedAlpha(),
            binary(Gives.SAME, "mul", ""),
            binary(Gives.FLOAT, "div", ""),
            binary(Gives.SAME, "remainder", ""),
            binary(Gives.SAME, "fmod", ""),
            binary(Gives.SAME, "bitwise_and", ""),
            binary(Gives.SAME, "bitwise_or", ""),
            binary(Gives.SAME, "bitwise_xor", ""),
            binary(Gives.SAME, "bitwise_left_shift", ""),
            binary(Gives.SAME, "bitwise_right_shift", ""),
            binary(Gives.BOOL, "eq", ""),
            binary(Gives.BOOL, "ne", ""),
            binary(Gives.BOOL, "lt", ""),
            binary(Gives.BOOL, "le", ""),
            binary(Gives.BOOL, "gt", ""),
            binary(Gives.BOOL, "ge", ""),
            plainBinary(Gives.SAME, "maximum", "minimum", "fmax", "fmin", "floor_divide"),
            plainBinary(Gives.FLOAT, "atan2"),
            plainBinary(Gives.BOOL, "logical_and", "logical_or", "logical_xor"),
            others())
        .flatMap(s -> s);
  }

  private static OpSpec spec(String schema, Gives gives, String... operands) {
    InferRule rule =
        InferRule.single(
            call -> {
              var given = operands(call, operands);
              return OpResult.fresh(
                  Types.elementwise(gives.map.apply(Types.promote(given)), given));
            });
    return OpSpec.of(schema).rule(rule).traits(OpTrait.ELEMENTWISE);
  }

  private static ImmutableList<Arg> operands(OpCall call, String... names) {
    var operands = ImmutableList.<Arg>builder();
    for (var name : names) {
      if (call.has(name)) {
        operands.add(call.arg(name));
      }
    }
    return operands.build();
  }

  private static Stream<OpSpec> unary(Gives gives, String... names) {
    return Stream.of(names)
        .map(name -> spec("aten::" + name + "(Tensor self) -> Tensor", gives, "self"));
  }

  /** The overloads with a tensor and with a number as the second operand. */
  private static Stream<OpSpec> binary(Gives gives, String name, String more) {
    var scalarMore = more.replace(", *, Scalar alpha", ", Scalar alpha");
    return Stream.of(
        spec(
            "aten::%s.Tensor(Tensor self, Tensor other%s) -> Tensor".formatted(name, more),
            gives,
            "self",
            "other"),
        spec(
            "aten::%s.Scalar(Tensor self, Scalar other%s) -> Tensor".formatted(name, scalarMore),
            gives,
            "self",
            "other"));
  }

  private static Stream<OpSpec> reversedAlpha() {
    return Stream.of(
        spec(
            "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
            Gives.SAME,
            "self",
            "other"),
        spec(
            "aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
            Gives.SAME,
            "self",
            "other"));
  }

  private static Stream<OpSpec> plainBinary(Gives gives, String... names) {
    return Stream.of(names)
        .map(
            name ->
                spec(
                    "aten::%s(Tensor self, Tensor other) -> Tensor".formatted(name),
                    gives,
                    "self",
                    "other"));
  }

  private static Stream<OpSpec> others() {
    return Stream.of(
        spec(
            "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
            Gives.SAME,
            "self",
            "exponent"),
        spec(
            "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
            Gives.SAME,
            "self",
            "exponent"),
        spec(
            "aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
            Gives.SAME,
            "self",
            "exponent"),
        spec("aten::gelu(Tensor self, *, str approximate='none') -> Tensor", Gives.SAME, "self"),
        spec(
            "aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
            Gives.SAME,
            "self"),
        spec(
            "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
            Gives.SAME,
            "self",
            "min",
            "max"),
        spec("aten::clamp_min(Tensor self, Scalar min) -> Tensor", Gives.SAME, "self", "min"),
        spec("aten::clamp_max(Tensor self, Scalar max) -> Tensor", Gives.SAME, "self", "max"),
        where(),
        spec(
            "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
            Gives.SAME,
            "self",
            "mask"),
        spec(
            "aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) ->"
                + " Tensor",
            Gives.SAME,
            "grad_output",
            "self"),
        spec(
            "aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) ->"
                + " Tensor",
            Gives.SAME,
            "self",
            "tensor1",
            "tensor2"),
        spec(
            "aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) ->"
                + " Tensor",
            Gives.SAME,
            "self",
            "tensor1",
            "tensor2"),
        spec(
            "aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
            Gives.SAME,
            "self",
            "end"),
        convert());
  }

  /** The condition decides the shape, but not the element type. */
  private static OpSpec where() {
    return OpSpec.of("aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor")
        .rule(
            InferRule.single(
                call -> {
                  var values = operands(call, "self", "other");
                  return OpResult.fresh(
                      Types.elementwise(
                          Types.promote(values), operands(call, "condition", "self", "other")));
                }))
        .traits(OpTrait.ELEMENTWISE);
  }

  private static OpSpec convert() {
    return OpSpec.of("prims::convert_element_type(Tensor a, ScalarType dtype) -> Tensor")
        .rule(
            InferRule.single(
                call ->
                    OpResult.fresh(
                        Types.elementwise(
                            call.dtype("dtype").orElseThrow(), ImmutableList.of(call.arg("a"))))))
        .traits(OpTrait.ELEMENTWISE);
  }
}
