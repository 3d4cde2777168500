package dev.symplan.ir.aten;

import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.ElementwiseTypes.Gives;
import dev.symplan.ir.aten.ElementwiseTypes.Takes;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;

/** Ops whose result elements depend on the operands' elements at the same index. */
final class ElementwiseOps {

  private static final String UNARY = "aten::NAME(Tensor self) -> Tensor";
  private static final String BINARY = "aten::NAME(Tensor self, Tensor other) -> Tensor";
  private static final String TENSOR = "aten::NAME.Tensor(Tensor self, Tensor other) -> Tensor";
  private static final String SCALAR = "aten::NAME.Scalar(Tensor self, Scalar other) -> Tensor";
  private static final String TENSOR_SCALAR =
      "aten::NAME.Tensor_Scalar(Tensor self, Scalar other) -> Tensor";
  private static final String SCALAR_TENSOR =
      "aten::NAME.Scalar_Tensor(Scalar self, Tensor other) -> Tensor";

  private ElementwiseOps() {}

  static Stream<OpSpec> all() {
    return Stream.concat(
        Stream.of(unary(), binary(), arithmetic(), choices(), others())
            .flatMap(specs -> specs)
            .map(spec -> spec.traits(OpTrait.ELEMENTWISE, OpTrait.ROWS_APART)),
        lazyViews()
            .map(spec -> spec.traits(OpTrait.ELEMENTWISE, OpTrait.ROWS_APART, OpTrait.LAZY_VIEW)));
  }

  private static Stream<OpSpec> unary() {
    return Stream.of(
            unary(Takes.ANY, Gives.SAME, "sgn square _conj_physical"),
            unary(Takes.REAL, Gives.SAME, "sign floor ceil round trunc relu"),
            // PyTorch gives real numbers back themselves.
            unary(Takes.COMPLEX, Gives.SAME, "conj_physical"),
            unary(Takes.ANY, Gives.REAL, "abs"),
            unary(Takes.NUMBERS, Gives.SAME, "neg"),
            unary(Takes.REAL_NUMBERS, Gives.SAME, "relu6"),
            unary(Takes.INTEGERS, Gives.SAME, "bitwise_not"),
            unary(Takes.FLOATS, Gives.SAME, "silu"),
            unary(
                Takes.REAL_FLOATS, Gives.SAME, "frac hardswish hardsigmoid mish selu log_sigmoid"),
            unary(
                Takes.ANY,
                Gives.FLOAT,
                """
                acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log10 log1p log2
                reciprocal rsqrt sigmoid sin sinc sinh sqrt tan tanh
                """),
            unary(
                Takes.REAL,
                Gives.FLOAT,
                """
                deg2rad digamma erf erfc erfinv i0 lgamma rad2deg special_erfcx special_log_ndtr
                special_ndtri
                """),
            unary(Takes.ANY, Gives.BOOL, "isfinite isinf isnan logical_not"),
            unary(Takes.REAL, Gives.BOOL, "isneginf isposinf signbit"))
        .flatMap(specs -> specs);
  }

  /** Their memory is new here: the planner refuses programs that write where PyTorch has one. */
  private static Stream<OpSpec> lazyViews() {
    return Stream.concat(
        Table.ops(
            "aten::_conj(Tensor(a) self) -> Tensor(a)",
            ElementwiseTypes.rule(Takes.COMPLEX, Gives.SAME)),
        Table.ops(
            "aten::_neg_view(Tensor(a) self) -> Tensor(a)",
            ElementwiseTypes.rule(Takes.NUMBERS, Gives.SAME)));
  }

  private static Stream<OpSpec> unary(Takes takes, Gives gives, String names) {
    return Table.named(names, UNARY, ElementwiseTypes.rule(takes, gives));
  }

  private static Stream<OpSpec> binary() {
    return Stream.of(
            binary(Takes.ANY, Gives.SAME, "mul", TENSOR, SCALAR),
            binary(Takes.REAL, Gives.SAME, "remainder fmod", TENSOR, SCALAR),
            binary(Takes.REAL, Gives.SAME, "remainder", SCALAR_TENSOR),
            binary(Takes.ANY, Gives.FLOAT, "div", TENSOR, SCALAR),
            binary(Takes.REAL, Gives.FLOAT, "copysign", TENSOR, SCALAR),
            binary(Takes.REAL, Gives.SAME, "floor_divide", BINARY, SCALAR),
            binary(
                Takes.INTEGERS,
                Gives.SAME,
                "bitwise_and bitwise_or bitwise_xor",
                TENSOR,
                SCALAR,
                SCALAR_TENSOR),
            binary(Takes.INTEGERS, Gives.SAME, "__and__ __or__ __xor__", TENSOR, SCALAR),
            binary(
                Takes.INTEGERS,
                Gives.SAME,
                "bitwise_left_shift bitwise_right_shift",
                TENSOR,
                TENSOR_SCALAR,
                SCALAR_TENSOR),
            binary(Takes.ANY, Gives.BOOL, "eq ne", TENSOR, SCALAR),
            binary(Takes.REAL, Gives.BOOL, "lt le gt ge", TENSOR, SCALAR),
            binary(Takes.REAL, Gives.SAME, "maximum minimum fmax fmin", BINARY),
            binary(
                Takes.REAL,
                Gives.SAME,
                "max min",
                "aten::NAME.other(Tensor self, Tensor other) -> Tensor"),
            binary(Takes.SIGNED_INTEGERS, Gives.SAME, "gcd lcm", BINARY),
            binary(Takes.REAL_FLOATS, Gives.SAME, "hypot nextafter", BINARY),
            binary(Takes.ANY, Gives.FLOAT, "logaddexp", BINARY),
            binary(Takes.REAL, Gives.FLOAT, "atan2 logaddexp2", BINARY),
            binary(Takes.ANY, Gives.BOOL, "logical_and logical_or logical_xor", BINARY),
            binary(
                Takes.REAL,
                Gives.FLOAT,
                "xlogy",
                TENSOR,
                "aten::NAME.Scalar_Self(Scalar self, Tensor other) -> Tensor",
                "aten::NAME.Scalar_Other(Tensor self, Scalar other) -> Tensor"))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> binary(Takes takes, Gives gives, String names, String... schemas) {
    var rule = ElementwiseTypes.rule(takes, gives, "self", "other");
    return Stream.of(schemas).flatMap(schema -> Table.named(names, schema, rule));
  }

  /** The ops whose further arguments matter to the types. */
  private static Stream<OpSpec> arithmetic() {
    return Stream.of(
            table(
                """
                aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
                aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
                """,
                ElementwiseOps::withAlpha),
            table(
                """
                aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
                aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
                aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
                aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
                """,
                call -> {
                  Takes.NUMBERS.check(ElementwiseTypes.promoted(call, "self"));
                  Takes.NUMBERS.check(ElementwiseTypes.promoted(call, "other"));
                  return withAlpha(call);
                }),
            table(
                """
                aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor
                aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor
                """,
                ElementwiseOps::divided),
            table(
                """
                aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
                aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor
                aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor
                """,
                ElementwiseOps::powered),
            table(
                """
                aten::float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
                aten::float_power.Scalar(Scalar self, Tensor exponent) -> Tensor
                aten::float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor
                """,
                Takes.ANY,
                Gives.F64,
                "self",
                "exponent"))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> choices() {
    return Stream.of(
            table(
                """
                aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor
                aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor
                aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor
                aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor
                """,
                ElementwiseOps::chosen),
            table(
                """
                aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor
                aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor
                """,
                ElementwiseOps::clamped),
            table(
                """
                aten::clamp_min(Tensor self, Scalar min) -> Tensor
                aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor
                """,
                Takes.REAL,
                Gives.SAME,
                "self",
                "min"),
            table(
                """
                aten::clamp_max(Tensor self, Scalar max) -> Tensor
                aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor
                """,
                Takes.REAL,
                Gives.SAME,
                "self",
                "max"),
            table(
                """
                aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor
                aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor
                """,
                ElementwiseOps::masked))
        .flatMap(specs -> specs);
  }

  /** Ops that compute with all tensors that they take; their numbers do not matter to the types. */
  private static Stream<OpSpec> others() {
    return Stream.of(
            table(
                """
                aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor
                aten::fill.Scalar(Tensor self, Scalar value) -> Tensor
                aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor
                aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor
                aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor
                aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor
                """,
                Takes.ANY,
                Gives.SAME),
            table(
                """
                aten::heaviside(Tensor self, Tensor values) -> Tensor
                aten::round.decimals(Tensor self, *, int decimals) -> Tensor
                aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor
                aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor
                aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor
                aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor
                aten::hardswish_backward(Tensor grad_output, Tensor self) -> Tensor
                aten::hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor
                aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor
                aten::logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor
                aten::mish_backward(Tensor grad_output, Tensor self) -> Tensor
                aten::softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor
                aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor
                """,
                Takes.REAL,
                Gives.SAME),
            // Its buffer is empty on GPUs.
            table(
                """
                aten::log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor
                """,
                Takes.REAL,
                Gives.SAME,
                "grad_output",
                "self"),
            table(
                """
                aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor
                aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor
                prims::fma(Tensor a, Tensor b, Tensor c) -> Tensor
                """,
                Takes.FLOATS,
                Gives.SAME),
            table(
                """
                aten::celu(Tensor self, Scalar alpha=1.0) -> Tensor
                aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor
                aten::gelu(Tensor self, *, str approximate='none') -> Tensor
                aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor
                aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor
                """,
                Takes.REAL_FLOATS,
                Gives.SAME),
            table(
                """
                aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor
                """,
                Takes.REAL_NUMBERS,
                Gives.SAME),
            table(
                """
                aten::logit(Tensor self, float? eps=None) -> Tensor
                """,
                Takes.REAL,
                Gives.FLOAT),
            table(
                """
                aten::angle(Tensor self) -> Tensor
                """,
                call ->
                    ElementwiseTypes.result(
                        Promotion.floating(call.tensor("self").dtype()).real(), call)),
            table(
                """
                aten::complex(Tensor real, Tensor imag) -> Tensor
                """,
                call -> paired(call, "real", "imag")),
            table(
                """
                aten::polar(Tensor abs, Tensor angle) -> Tensor
                """,
                call -> paired(call, "abs", "angle")),
            table(
                """
                aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor
                """,
                ElementwiseOps::addedQuotient),
            table(
                """
                aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor
                """,
                call -> ElementwiseTypes.result(call.tensor("grad_output").dtype(), call)),
            table(
                """
                aten::fill.Tensor(Tensor self, Tensor value) -> Tensor
                """,
                call -> filled(call.tensor("self"), call.tensor("value"))),
            table(
                """
                prims::convert_element_type(Tensor a, ScalarType dtype) -> Tensor
                """,
                call -> ElementwiseTypes.result(call.dtype("dtype").orElseThrow(), call)))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> table(String schemas, Function<OpCall, OpResult> rule) {
    return Table.single(schemas, rule);
  }

  private static Stream<OpSpec> table(
      String schemas, Takes takes, Gives gives, String... operands) {
    return Table.ops(schemas, ElementwiseTypes.rule(takes, gives, operands));
  }

  /** A complex number for each pair; PyTorch takes no pairs of several types. */
  private static OpResult paired(OpCall call, String one, String other) {
    var dtype = call.tensor(one).dtype();
    if (dtype != call.tensor(other).dtype() || Promotion.complex(dtype).real() != dtype) {
      throw new OpTypeException(
          "needs two of f16, f32 or f64, not %s and %s"
              .formatted(dtype.shortName(), call.tensor(other).dtype().shortName()),
          "convert with prims::convert_element_type");
    }
    return ElementwiseTypes.result(Promotion.complex(dtype), call);
  }

  private static OpResult withAlpha(OpCall call) {
    var result = ElementwiseTypes.computed(call, Takes.ANY, Gives.SAME, "self", "other");
    if (call.arg("alpha") instanceof Arg.Float
        && Promotion.isIntegral(((TensorType) result.type()).dtype())) {
      throw new OpTypeException("alpha is a float, but the operands are integers");
    }
    return result;
  }

  private static OpResult divided(OpCall call) {
    if (!call.has("rounding_mode")) {
      return ElementwiseTypes.computed(call, Takes.ANY, Gives.FLOAT, "self", "other");
    }
    var mode = call.string("rounding_mode");
    if (!mode.equals("trunc") && !mode.equals("floor")) {
      throw new OpTypeException(
          "unknown rounding mode '%s'".formatted(mode), "'trunc', 'floor' or None");
    }
    return ElementwiseTypes.computed(call, Takes.REAL, Gives.SAME, "self", "other");
  }

  private static OpResult addedQuotient(OpCall call) {
    if (Promotion.isIntegral(call.tensor("tensor1").dtype())
        && Promotion.isIntegral(call.tensor("tensor2").dtype())) {
      throw new OpTypeException(
          "cannot divide integers by integers", "divide with aten::div.Tensor_mode, then add");
    }
    return ElementwiseTypes.computed(call, Takes.ANY, Gives.SAME);
  }

  private static OpResult powered(OpCall call) {
    var result = ElementwiseTypes.computed(call, Takes.ANY, Gives.SAME, "self", "exponent");
    if (call.arg("exponent") instanceof Arg.Int(long exponent)
        && exponent < 0
        && Promotion.isIntegral(((TensorType) result.type()).dtype())) {
      throw new OpTypeException(
          "an integer to the power of %s is not an integer".formatted(exponent),
          "convert the base to a float type");
    }
    return result;
  }

  /** The condition decides the shape, but not the element type. */
  private static OpResult chosen(OpCall call) {
    var condition = call.tensor("condition").dtype();
    if (condition != DType.BOOL && condition != DType.U8) {
      throw new OpTypeException(
          "condition must be bool, not " + condition.shortName(), "compare it with 0");
    }
    return ElementwiseTypes.result(
        ElementwiseTypes.promoted(call, "self", "other"), call, "condition", "self", "other");
  }

  private static OpResult clamped(OpCall call) {
    if (!call.has("min") && !call.has("max")) {
      throw new OpTypeException("needs min or max, or both");
    }
    return ElementwiseTypes.computed(call, Takes.REAL, Gives.SAME, "self", "min", "max");
  }

  private static OpResult masked(OpCall call) {
    if (call.tensor("mask").dtype() != DType.BOOL) {
      throw new OpTypeException(
          "mask must be bool, not " + call.tensor("mask").dtype().shortName());
    }
    if (call.arg("value") instanceof Arg.Ref(Value value)
        && value.type() instanceof TensorType type
        && type.rank() > 0) {
      throw new OpTypeException("value must have no dimensions, but is " + type);
    }
    var self = call.tensor("self");
    return OpResult.fresh(
        self.dtype(), Shapes.broadcast(self.sizes(), call.tensor("mask").sizes()));
  }

  private static OpResult filled(TensorType self, TensorType value) {
    if (value.rank() > 0) {
      throw new OpTypeException("value must have no dimensions, but is " + value);
    }
    return OpResult.fresh(Layouts.pointwise(self.dtype(), List.of(self)));
  }
}
