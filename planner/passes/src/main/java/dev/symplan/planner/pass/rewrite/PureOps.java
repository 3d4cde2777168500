package dev.symplan.planner.pass.rewrite;

import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.pass.analysis.Aliases;

/** Ops that other ops may move over, and that may run again. */
final class PureOps {
  private PureOps() {}

  /** {@return whether an op only computes its results: it has no effects and meets nobody} */
  static boolean isPure(Op op) {
    return op.def().rule().isPresent()
        && !op.def().hasEffect()
        && !op.def().isFence()
        && !op.def().has(OpTrait.WAIT)
        && op.def().collective().isEmpty();
  }

  /** {@return whether an op makes one tensor in memory of its own, element by element} */
  static boolean isElementwise(Op op, Aliases aliases) {
    return op.def().has(OpTrait.ELEMENTWISE)
        && isPure(op)
        && op.results().size() == 1
        && op.result().isTensor()
        && aliases.defines(op.result());
  }
}
