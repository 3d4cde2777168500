package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.ElementwiseTypes.Takes;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpSpec;
import java.util.stream.Stream;

/** Ops of real numbers: PyTorch refuses their calls with complex ones. */
final class RealOps {
  /** Relatives of such ops that PyTorch computes with complex numbers. */
  private static final ImmutableSet<String> OTHERS =
      ImmutableSet.of("aten::rms_norm", "aten::_fused_rms_norm", "aten::im2col", "aten::col2im");

  private RealOps() {}

  /** {@return the same ops, with rules that refuse complex numbers} */
  static Stream<OpSpec> of(Stream<OpSpec> specs) {
    return specs.map(
        spec ->
            OTHERS.contains(spec.name().toString())
                ? spec
                : spec.rule().map(rule -> spec.rule(checked(rule))).orElse(spec));
  }

  private static InferRule checked(InferRule rule) {
    return call -> {
      call.args().forEach(RealOps::check);
      return rule.infer(call);
    };
  }

  private static void check(Arg arg) {
    switch (arg) {
      case Arg.Ref(Value value) -> {
        if (value.type() instanceof TensorType type) {
          Takes.REAL.check(type.dtype());
        }
      }
      case Arg.Seq(var items) -> items.forEach(RealOps::check);
      case Arg.Literal _ -> {}
    }
  }
}
