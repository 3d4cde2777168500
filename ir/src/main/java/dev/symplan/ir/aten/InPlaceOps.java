package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.stream.Stream;

/** The forms of ops, named with a final underscore, that write their result over {@code self}. */
final class InPlaceOps {
  private static final String SELF = "(Tensor self";

  /** The ops that have such a form for every overload whose {@code self} is a tensor. */
  private static final ImmutableSet<String> NAMES =
      ImmutableSet.copyOf(
          """
          abs acos acosh add addbmm addcdiv addcmul addmm addmv asin asinh atan atan2 atanh baddbmm
          bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil
          celu clamp clamp_max clamp_min conj_physical copysign cos cosh cumprod cumsum deg2rad
          digamma div elu eq erf erfc erfinv exp exp2 expm1 fill floor fmod frac gcd ge gelu gt
          hardsigmoid hardswish hardtanh heaviside hypot i0 index_add index_copy index_fill
          index_put lcm le leaky_relu lerp lgamma log log10 log1p log2 logical_and logical_not
          logical_or logical_xor logit lt masked_fill masked_scatter mish mul nan_to_num ne neg
          nextafter reciprocal relu relu6 remainder round rsqrt scatter scatter_add scatter_reduce
          selu sgn sigmoid sign silu sin sinc sinh sqrt square sub tan tanh threshold tril triu
          trunc xlogy
          """
              .strip()
              .split("\\s+"));

  private InPlaceOps() {}

  /** {@return the forms in place of those of the ops that have one} */
  static Stream<OpSpec> of(Stream<OpSpec> ops) {
    return ops.filter(InPlaceOps::hasForm).map(InPlaceOps::form);
  }

  /** The in-place ops whose functional form is not an op here. */
  static Stream<OpSpec> all() {
    return Table.single(
        """
        aten::zero_(Tensor(a!) self) -> Tensor(a!)
        """,
        call -> ViewOps.whole(call.value("self")),
        OpTrait.SIDE_EFFECT);
  }

  private static boolean hasForm(OpSpec spec) {
    var name = spec.name();
    return NAMES.contains(name.name())
        && !name.overload().equals("dtype")
        && spec.schemaText().contains(SELF)
        && spec.schemaText().endsWith("-> Tensor");
  }

  private static OpSpec form(OpSpec spec) {
    var name = spec.name();
    var overload = name.overload().isEmpty() ? "" : "." + name.overload();
    var text = spec.schemaText();
    var rest = text.substring(text.indexOf(SELF) + SELF.length());
    return OpSpec.of("%s_%s(Tensor(a!) self%s(a!)".formatted(name.base(), overload, rest))
        .rule(inPlace(spec.rule().orElseThrow(), name.name().equals("abs")))
        .traits(OpTrait.SIDE_EFFECT);
  }

  /**
   * @param real whether the result is real; PyTorch puts none in the place of complex numbers
   */
  private static InferRule inPlace(InferRule rule, boolean real) {
    return call -> {
      if (real) {
        ElementwiseTypes.Takes.REAL.check(call.tensor("self").dtype());
      }
      return List.of(written(call, (TensorType) rule.infer(call).getFirst().type()));
    };
  }

  private static OpResult written(OpCall call, TensorType result) {
    Value self = call.value("self");
    if (!self.tensor().sizes().equals(result.sizes())) {
      throw new OpTypeException(
          "the result has the shape %s, and does not fit into '%s' of shape %s"
              .formatted(
                  Shapes.text(result.sizes()), self.name(), Shapes.text(self.tensor().sizes())));
    }
    if (!holds(self.tensor().dtype(), result.dtype())) {
      throw new OpTypeException(
          "the result is %s, and does not fit into '%s' of %s"
              .formatted(
                  result.dtype().shortName(), self.name(), self.tensor().dtype().shortName()));
    }
    return ViewOps.whole(self);
  }

  /** PyTorch's {@code can_cast}: precision may be lost, a kind of number may not. */
  private static boolean holds(DType target, DType result) {
    return target.kind().compareTo(result.kind()) >= 0;
  }
}
