package dev.symplan.planner.pass.rewrite;

import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.SliceDims;
import dev.symplan.planner.pass.rewrite.OpEmitter.Target;

/**
 * A collective of another library as a functional one, with copies around it where the ranks' parts
 * do not lie along the first dimension.
 */
final class ForeignCollective {
  private ForeignCollective() {}

  /**
   * Emits the functional collective, whose result has the name of the op's; of an op without one,
   * that of the tensor that it writes.
   *
   * @return that result
   * @throws CompileException when it is not of the type that the op's result, or what the op
   *     writes, has
   */
  static Value emit(OpEmitter emitter) {
    var op = emitter.at();
    var call = op.collective().orElseThrow();
    var written = call.target();
    if (call.operands().size() != 1 || op.results().size() > 1) {
      throw emitter.error("is of several tensors, and only collectives of one are supported");
    }
    if (call.kind() == Kind.ALL_TO_ALL && !call.sliceDims().equals(SliceDims.FIRST)) {
      throw emitter.error("exchanges slices along other dimensions than the first");
    }
    var target =
        op.results().isEmpty()
            ? Target.of(written.orElseThrow().name() + "_" + call.kind().text())
            : Target.of(op.result(), call.kind().text());
    var operand = emitter.copier().now(call.operands().getFirst());
    var algorithm = call.algorithm().<Arg>map(Arg.Str::new).orElse(Arg.None.NONE);
    int dim = call.dim(operand.tensor().rank());
    var made =
        switch (call.kind()) {
          case ALL_REDUCE ->
              emitter.allReduce(
                  target, operand, call.reduceOp().orElseThrow(), call.group(), algorithm);
          case ALL_GATHER -> emitter.allGather(target, operand, dim, call.group(), algorithm);
          case REDUCE_SCATTER ->
              emitter.reduceScatter(
                  target, operand, dim, call.reduceOp().orElseThrow(), call.group(), algorithm);
          case ALL_TO_ALL ->
              emitter.allToAll(
                  target,
                  operand,
                  Arg.Seq.of(call.outputSplits().stream()),
                  Arg.Seq.of(call.inputSplits().stream()),
                  call.group());
          case BROADCAST ->
              emitter.broadcast(target, operand, call.root().orElseThrow(), call.group());
          case COLLECTIVE_PERMUTE ->
              emitter.permute(target, operand, call.permutation(), call.group(), algorithm);
          case CUSTOM ->
              throw new IllegalStateException(op.def().name() + " has no functional form");
        };
    emitter.checkType(made, written.orElseGet(op::result), written.isEmpty());
    return made;
  }
}
