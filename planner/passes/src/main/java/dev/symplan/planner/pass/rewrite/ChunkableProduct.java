package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;

/**
 * A matrix product whose result only one collective reads.
 *
 * @param index of the op
 * @param left the factor whose rows are the product's rows
 * @param views the ops between, that only look at the result in another shape
 */
record ChunkableProduct(int index, Op op, Value left, ImmutableList<Integer> views) {
  static final OpDef SLICE = BuiltinOps.registry().get("aten::slice.Tensor");
  static final OpDef VIEW = BuiltinOps.registry().get("aten::view");

  /** {@return the rows of the result, all dimensions but the last together} */
  public long rows() {
    var type = op.result().tensor();
    return type.numel() / type.size(type.rank() - 1);
  }

  /** {@return the left factor as a matrix} */
  public TensorType matrix() {
    var type = left.tensor();
    return type.rank() == 2
        ? type
        : TensorType.contiguous(type.dtype(), rows(), type.size(type.rank() - 1));
  }

  /** {@return the op with {@code rows} for its left factor} */
  public ImmutableList<Arg> args(ImmutableList<Arg> all, Value rows) {
    var args = ImmutableList.<Arg>builder();
    for (int i = 0; i < all.size(); i++) {
      boolean isLeft = op.def().schema().params().get(i).name().equals(leftParam(op));
      args.add(isLeft ? new Arg.Ref(rows) : all.get(i));
    }
    return args.build();
  }

  /** {@return an op as large as one of so many pieces: to ask for its cost} */
  public Op piece(int pieces) {
    if (pieces == 1) {
      return op;
    }
    var matrix = matrix();
    var rows =
        new Value(
            0,
            left.name(),
            TensorType.contiguous(matrix.dtype(), matrix.size(0) / pieces, matrix.size(1)),
            left.span(),
            false);
    var args = args(op.args(), rows);
    var type = op.def().infer(args).orElseThrow().getFirst().type();
    var result = new Value(1, op.result().name(), type, op.span(), false);
    return new Op(op.def(), args, ImmutableList.of(result), op.span(), op.notes());
  }

  /** {@return the parameter of the factor that has the rows of the result; empty for other ops} */
  public static String leftParam(Op op) {
    return switch (op.def().name().toString()) {
      case "aten::mm" -> "self";
      case "aten::addmm" -> "mat1";
      case "aten::linear" -> "input";
      default -> "";
    };
  }
}
