package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.planner.pass.rewrite.OpEmitter.Target;
import java.util.List;

/** Writes the ops on tensors that rewrites need most often; see {@link OpEmitter}. */
record TensorEmitter(OpEmitter emitter) {

  static Arg ref(Value value) {
    return new Arg.Ref(value);
  }

  static long lastSize(Value value) {
    return value.tensor().size(value.tensor().rank() - 1);
  }

  /** Emits an op with one new result. */
  Value emit(String name, String op, Arg... args) {
    return emitter.emit(Target.of(name), op, args);
  }

  Value cast(Value value, DType to) {
    return value.tensor().dtype() == to
        ? value
        : emit("wide", "aten::_to_copy", ref(value), new Arg.Dtype(to));
  }

  /** The products of matrices, [batch, rows, columns]. */
  Value product(Value left, Value right) {
    return emit("product", "aten::bmm", ref(left), ref(right));
  }

  /** Matrices with rows as columns, [batch, columns, rows]. */
  Value transposed(Value value) {
    return emit("turned", "aten::transpose.int", ref(value), new Arg.Int(1), new Arg.Int(2));
  }

  Value cat(List<Value> parts, int dim) {
    return parts.size() == 1
        ? parts.getFirst()
        : emit(
            "joined",
            "aten::cat",
            new Arg.Seq(
                parts.stream().<Arg>map(Arg.Ref::new).collect(ImmutableList.toImmutableList())),
            new Arg.Int(dim));
  }

  Value slice(Value value, int dim, long from, long to) {
    return from == 0 && to == value.tensor().size(dim)
        ? value
        : emit(
            "part",
            "aten::slice.Tensor",
            ref(value),
            new Arg.Int(dim),
            new Arg.Int(from),
            new Arg.Int(to));
  }

  Value select(Value value, int dim, long index) {
    return emit("part", "aten::select.int", ref(value), new Arg.Int(dim), new Arg.Int(index));
  }

  /** A view, if there is one. */
  Value reshape(Value value, long... sizes) {
    return value.tensor().sizes().equals(ImmutableLongArray.copyOf(sizes))
        ? value
        : emit("shaped", "aten::reshape", ref(value), Arg.Seq.of(sizes));
  }
}
