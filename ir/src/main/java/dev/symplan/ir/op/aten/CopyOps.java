package dev.symplan.ir.op.aten;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.function.Function;
import java.util.stream.Stream;

/** Ops that copy, join or make tensors. */
final class CopyOps {
  private static final String TENSOR_OPTIONS =
      "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None";

  private CopyOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
        spec(
            "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
            CopyOps::cloned),
        spec(
            "aten::_to_copy(Tensor self, *, "
                + TENSOR_OPTIONS
                + ", bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
            CopyOps::converted),
        OpSpec.of("aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)")
            .rule(InferRule.single(CopyOps::copiedInto))
            .traits(OpTrait.SIDE_EFFECT),
        spec("aten::cat(Tensor[] tensors, int dim=0) -> Tensor", CopyOps::joined),
        spec("aten::stack(Tensor[] tensors, int dim=0) -> Tensor", CopyOps::stacked),
        creation(
            "aten::full(SymInt[] size, Scalar fill_value, *, " + TENSOR_OPTIONS + ") -> Tensor",
            call ->
                OpResult.fresh(
                    call.dtype("dtype").orElseGet(() -> numberType(call.arg("fill_value"))),
                    call.integers("size"))),
        creation(
            "aten::scalar_tensor(Scalar s, *, " + TENSOR_OPTIONS + ") -> Tensor",
            call -> OpResult.fresh(call.dtype("dtype").orElse(DType.F32), ImmutableLongArray.of())),
        creation(
            "aten::zeros(SymInt[] size, *, " + TENSOR_OPTIONS + ") -> Tensor",
            call -> OpResult.fresh(call.dtype("dtype").orElse(DType.F32), call.integers("size"))),
        creation(
            "aten::ones(SymInt[] size, *, " + TENSOR_OPTIONS + ") -> Tensor",
            call -> OpResult.fresh(call.dtype("dtype").orElse(DType.F32), call.integers("size"))),
        creation(
            "prims::iota(SymInt length, *, SymInt start, SymInt step, ScalarType dtype, Device"
                + " device, bool requires_grad) -> Tensor",
            call ->
                OpResult.fresh(
                    call.dtype("dtype").orElseThrow(),
                    ImmutableLongArray.of(call.integer("length")))),
        like("zeros_like", ""),
        like("ones_like", ""),
        like("full_like", "Scalar fill_value, "));
  }

  private static OpSpec spec(String schema, Function<OpCall, OpResult> rule) {
    return OpSpec.of(schema).rule(InferRule.single(rule));
  }

  private static OpSpec creation(String schema, Function<OpCall, OpResult> rule) {
    return spec(schema, rule).traits(OpTrait.CREATION);
  }

  private static OpSpec like(String name, String more) {
    var params = more.isEmpty() ? "*, " : more + "*, ";
    return creation(
        "aten::%s(Tensor self, %s%s, MemoryFormat? memory_format=None) -> Tensor"
            .formatted(name, params, TENSOR_OPTIONS),
        CopyOps::converted);
  }

  private static DType numberType(Arg number) {
    return switch (number) {
      case Arg.Int _ -> DType.I64;
      case Arg.Bool _ -> DType.BOOL;
      default -> DType.F32;
    };
  }

  /** {@code preserve_format}, the default, keeps the strides of what has no gaps. */
  private static TensorType copyType(OpCall call) {
    var self = call.tensor("self");
    boolean preserve =
        !call.has("memory_format")
            || call.arg("memory_format").equals(new Arg.Symbol("preserve_format"));
    return preserve && self.isDense() ? self : self.contiguous();
  }

  private static OpResult cloned(OpCall call) {
    return OpResult.fresh(copyType(call));
  }

  private static OpResult converted(OpCall call) {
    var type = copyType(call);
    return OpResult.fresh(type.withDType(call.dtype("dtype").orElse(type.dtype())));
  }

  private static OpResult copiedInto(OpCall call) {
    var self = call.value("self");
    var type = self.tensor();
    if (!Types.broadcast(type.sizes(), call.tensor("src").sizes()).equals(type.sizes())) {
      throw new OpTypeException(
          "src of shape %s does not broadcast to %s"
              .formatted(Types.text(call.tensor("src").sizes()), Types.text(type.sizes())));
    }
    return OpResult.view(self, type.sizes(), type.strides(), 0);
  }

  private static DType promoted(ImmutableList<Value> tensors) {
    return Types.promote(tensors.stream().<Arg>map(Arg.Ref::new).toList());
  }

  private static OpResult joined(OpCall call) {
    var tensors = call.values("tensors");
    if (tensors.isEmpty()) {
      throw new OpTypeException("there is nothing to join");
    }
    var first = tensors.getFirst().tensor();
    if (first.rank() == 0) {
      throw new OpTypeException("scalar tensors cannot be joined", "use aten::stack");
    }
    int dim = call.dim("dim", first.rank());
    var sizes = first.sizes().toArray();
    for (var tensor : tensors.subList(1, tensors.size())) {
      var type = tensor.tensor();
      if (type.rank() != first.rank()) {
        throw new OpTypeException(
            "'%s' has %d dimensions, the first tensor %d"
                .formatted(tensor.name(), type.rank(), first.rank()));
      }
      for (int i = 0; i < sizes.length; i++) {
        if (i != dim && type.size(i) != sizes[i]) {
          throw new OpTypeException(
              "'%s' has size %d at dimension %d, the first tensor %d"
                  .formatted(tensor.name(), type.size(i), i, sizes[i]));
        }
      }
      sizes[dim] += type.size(dim);
    }
    return OpResult.fresh(promoted(tensors), ImmutableLongArray.copyOf(sizes));
  }

  private static OpResult stacked(OpCall call) {
    var tensors = call.values("tensors");
    if (tensors.isEmpty()) {
      throw new OpTypeException("there is nothing to stack");
    }
    var first = tensors.getFirst().tensor();
    for (var tensor : tensors) {
      if (!tensor.tensor().sizes().equals(first.sizes())) {
        throw new OpTypeException(
            "'%s' is %s, the first tensor %s".formatted(tensor.name(), tensor.tensor(), first));
      }
    }
    int dim = call.dim("dim", first.rank() + 1);
    var sizes = ImmutableLongArray.builder(first.rank() + 1);
    for (int i = 0; i <= first.rank(); i++) {
      if (i == dim) {
        sizes.add(tensors.size());
      }
      if (i < first.rank()) {
        sizes.add(first.size(i));
      }
    }
    return OpResult.fresh(promoted(tensors), sizes.build());
  }
}
