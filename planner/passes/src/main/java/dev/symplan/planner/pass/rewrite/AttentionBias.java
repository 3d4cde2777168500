package dev.symplan.planner.pass.rewrite;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.op.OpCall;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.LibraryAttention;
import dev.symplan.planner.pass.rewrite.OpEmitter.Target;

/** Rewrites the bias of attention, which is added to its scores. */
record AttentionBias(OpEmitter emitter) {

  /** {@return the bias of an op with four dimensions, of size 1 if it is broadcast} */
  Value fourDimensional(OpCall call) {
    var bias = call.value(AttentionOps.bias(call.def()).orElseThrow());
    var sizes = new long[] {1, 1, 1, 1};
    int missing = 4 - bias.tensor().rank();
    for (int dim = missing; dim < 4; dim++) {
      sizes[dim] = bias.tensor().size(dim - missing);
    }
    return missing == 0 ? bias : emit("aten::view", bias, Arg.Seq.of(sizes));
  }

  /** {@return the bias of an op as numbers, a dense row for each row of scores} */
  Value forLibrary(OpCall call) {
    var query = call.tensor("query");
    var key = call.tensor("key");
    var bias = fourDimensional(call);
    var from = bias.tensor();
    long rows = query.size(query.rank() - 2);
    long columns = key.size(key.rank() - 2);
    var sizes = ImmutableLongArray.of(from.size(0), from.size(1), rows, columns);
    var whole =
        from.sizes().equals(sizes) ? bias : emit("aten::expand", bias, Arg.Seq.of(sizes.stream()));
    var type = inAlignedRows(from.dtype() == DType.BOOL ? query.dtype() : from.dtype(), sizes);
    if (from.dtype() == DType.BOOL) {
      var nothing =
          emitter.emit(
              Target.of("seen"),
              "aten::full",
              Arg.Seq.of(),
              new Arg.Int(0),
              new Arg.Dtype(type.dtype()));
      return emitter.emitAs(
          "bias",
          type,
          "aten::where.ScalarOther",
          new Arg.Ref(whole),
          new Arg.Ref(nothing),
          new Arg.Float(Double.NEGATIVE_INFINITY));
    }
    return emitter.emitAs("bias", type, "aten::clone", new Arg.Ref(whole));
  }

  /** {@return a type whose rows begin where {@link LibraryAttention} wants them} */
  private static TensorType inAlignedRows(DType dtype, ImmutableLongArray sizes) {
    long step = Alignment.VECTOR / dtype.bytes();
    long row = Math.ceilDiv(sizes.get(3), step) * step;
    var strides =
        ImmutableLongArray.of(sizes.get(1) * sizes.get(2) * row, sizes.get(2) * row, row, 1);
    return TensorType.contiguous(dtype, sizes).withStrides(strides);
  }

  private Value emit(String op, Value value, Arg arg) {
    return emitter.emit(Target.of("bias"), op, new Arg.Ref(value), arg);
  }
}
