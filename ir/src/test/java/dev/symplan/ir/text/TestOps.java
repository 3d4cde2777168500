package dev.symplan.ir.text;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpRegistry;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.function.Function;

/** A few ops with small rules, in a namespace of their own. */
final class TestOps {
  private static final int MAX_PARTS = 1000;

  private TestOps() {}

  static OpRegistry registry() {
    var registry = BuiltinOps.registry().child();
    registry.define(spec("test::mm(Tensor self, Tensor mat2) -> Tensor", TestOps::mm));
    registry.define(
        spec(
            "test::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
            call -> OpResult.fresh(call.tensor("self"))));
    registry.define(
        spec(
            "test::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
            call -> OpResult.fresh(call.tensor("self"))));
    registry.define(
        spec(
            "test::scale(Tensor self, float factor=1e-05, *, float? nan=None) -> Tensor",
            call -> OpResult.fresh(call.tensor("self"))));
    registry.define(
        OpSpec.of("test::split.Tensor(Tensor(a -> *) self, SymInt size, int dim=0) -> Tensor(a)[]")
            .rule(TestOps::split));
    registry.define(
        spec(
            "test::cat(Tensor[] tensors, int dim=0) -> Tensor",
            call ->
                call.values("tensors").stream()
                    .findFirst()
                    .map(value -> OpResult.fresh(value.tensor()))
                    .orElseGet(() -> OpResult.fresh(DType.F32, ImmutableLongArray.of(0)))));
    registry.define(
        spec(
            "test::to.dtype(Tensor self, ScalarType dtype, *, Device? device=None, MemoryFormat?"
                + " memory_format=None) -> Tensor",
            call ->
                OpResult.fresh(call.tensor("self").withDType(call.dtype("dtype").orElseThrow()))));
    registry.define(spec("test::t(Tensor(a) self) -> Tensor(a)", TestOps::t));
    registry.define(
        spec(
            "test::pad(Tensor self, int[2] amount=0, str mode=\"constant\") -> Tensor",
            call -> OpResult.fresh(call.tensor("self"))));
    registry.define(
        OpSpec.of("test::barrier(Tensor[] inputs) -> ()").rule(call -> ImmutableList.of()));
    registry.define(OpSpec.of("test::opaque(Tensor input, *, str? name=None) -> (Tensor, Tensor)"));
    registry.define(
        spec(
                "test::all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor",
                call -> OpResult.fresh(call.tensor("input")))
            .symmMemArgs(List.of("input"))
            .collective(CollectiveSpec.of(CollectiveSpec.Kind.ALL_REDUCE)));
    return registry;
  }

  private static OpSpec spec(String schema, Function<OpCall, OpResult> rule) {
    return OpSpec.of(schema).rule(InferRule.single(rule));
  }

  private static OpResult mm(OpCall call) {
    var a = call.tensor("self");
    var b = call.tensor("mat2");
    if (a.rank() != 2 || b.rank() != 2 || a.size(1) != b.size(0)) {
      throw new OpTypeException("%s and %s do not multiply".formatted(a, b), "transpose one");
    }
    return OpResult.fresh(a.dtype(), ImmutableLongArray.of(a.size(0), b.size(1)));
  }

  private static OpResult t(OpCall call) {
    var of = call.value("self");
    var type = of.tensor();
    return OpResult.view(
        of,
        ImmutableLongArray.of(type.size(1), type.size(0)),
        ImmutableLongArray.of(type.stride(1), type.stride(0)),
        0);
  }

  private static List<OpResult> split(OpCall call) {
    var type = call.tensor("self");
    int dim = call.dim("dim", type.rank());
    long size = call.integer("size");
    if (size < 1 || type.size(dim) / size > MAX_PARTS) {
      throw new OpTypeException("size is " + size);
    }
    var results = ImmutableList.<OpResult>builder();
    for (long at = 0; at < type.size(dim); at += size) {
      var sizes = type.sizes().toArray();
      sizes[dim] = Math.min(size, type.size(dim) - at);
      results.add(
          OpResult.view(
              call.value("self"),
              ImmutableLongArray.copyOf(sizes),
              type.strides(),
              at * type.stride(dim)));
    }
    return results.build();
  }
}
