package dev.symplan.planner.pass.rewrite;

import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Precedence;

/** Ops that other ops may move over, and that may run again. */
final class PureOps {
  private PureOps() {}

  /** {@return whether an op only computes results, the same ones each time, and meets nobody} */
  static boolean isPure(Op op) {
    return op.def().rule().isPresent()
        && !Precedence.hasEffect(op)
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
