package dev.symplan.planner.pass.rewrite;

import dev.symplan.ir.Arg;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Role;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.pass.rewrite.OpEmitter.Target;

/**
 * Gathers and scatters of slices along another dimension than the first, between domains. Only NCCL
 * runs there, which moves contiguous slices, so that a copy brings the rows together.
 */
final class SeparateRows {
  private SeparateRows() {}

  /** {@return whether ops of such a definition gather or scatter along a dimension of choice} */
  static boolean haveDim(OpDef def) {
    return def.name().namespace().equals("symplan")
        && def.collective().filter(spec -> spec.has(Role.DIM)).isPresent();
  }

  /** {@return whether slices that a graph gathers or scatters consist of separate rows} */
  static boolean has(Op op) {
    return haveDim(op.def())
        && op.collective()
            .filter(
                call ->
                    !call.sliceDims()
                        .areRuns(call.operands().getFirst().tensor(), op.result().tensor()))
            .isPresent();
  }

  /** Emits the collective along the first dimension, and the copy. */
  static void emit(OpEmitter emitter) {
    var op = emitter.at();
    var call = op.collective().orElseThrow();
    var operand = emitter.copier().now(call.operands().getFirst());
    var algorithm = call.algorithm().<Arg>map(Arg.Str::new).orElse(Arg.None.NONE);
    int dim = call.dim(operand.tensor().rank());
    var target = Target.of(op.result());
    if (call.kind().reduces()) {
      // NCCL does not convert what it reduces.
      var sent = call.dtype().map(to -> new TensorEmitter(emitter).cast(operand, to));
      emitter.reduceScatter(
          target,
          sent.orElse(operand),
          dim,
          call.reduceOp().orElseThrow(),
          call.group(),
          algorithm);
    } else {
      emitter.allGather(target, operand, dim, call.group(), algorithm);
    }
  }
}
