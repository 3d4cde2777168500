package dev.symplan.ir.aten;

import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import java.util.stream.Stream;

/** The ops that the planner puts in. */
final class SymplanOps {
  private SymplanOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
        OpSpec.of("symplan::stage(Tensor self) -> Tensor")
            .rule(InferRule.single(call -> OpResult.fresh(call.tensor("self").contiguous()))));
  }
}
