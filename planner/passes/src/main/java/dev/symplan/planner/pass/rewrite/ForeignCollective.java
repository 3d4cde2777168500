package dev.symplan.planner.pass.rewrite;

import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.pass.analysis.GraphCopier;
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
   * @param result the type of what the collective gives
   * @return that
   */
  static Value emit(GraphCopier copier, Op op, TensorType result) {
    var emitter = new OpEmitter(copier, op);
    var call = op.collective().orElseThrow();
    var target =
        op.results().isEmpty()
            ? Target.of(call.target().orElseThrow().name() + "_" + call.kind().text())
            : Target.of(op.result());
    var operand = copier.now(call.operands().getFirst());
    var algorithm = call.algorithm().<Arg>map(Arg.Str::new).orElse(Arg.None.NONE);
    int dim = call.dim(result.rank());
    return switch (call.kind()) {
      case ALL_REDUCE ->
          emitter.allReduce(
              target, operand, call.reduceOp().orElseThrow().text(), call.group(), algorithm);
      case ALL_GATHER ->
          emitter.allGather(
              target,
              operand,
              dim,
              ranks(emitter, operand.tensor(), result, dim, call.kind()),
              call.group(),
              algorithm);
      case REDUCE_SCATTER ->
          emitter.reduceScatter(
              target,
              operand,
              dim,
              ranks(emitter, operand.tensor(), result, dim, call.kind()),
              call.reduceOp().orElseThrow().text(),
              call.group(),
              algorithm);
      case ALL_TO_ALL, BROADCAST, CUSTOM ->
          throw new IllegalStateException(op.def().name() + " has no functional form");
    };
  }

  private static long ranks(
      OpEmitter emitter, TensorType operand, TensorType result, int dim, Kind kind) {
    var whole = kind == Kind.ALL_GATHER ? result : operand;
    var part = kind == Kind.ALL_GATHER ? operand : result;
    if (dim >= whole.rank()
        || dim >= part.rank()
        || part.size(dim) == 0
        || whole.size(dim) % part.size(dim) != 0) {
      throw emitter.error("takes %s, and cannot give %s".formatted(operand, result));
    }
    return whole.size(dim) / part.size(dim);
  }
}
