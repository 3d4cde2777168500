package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import java.util.stream.Stream;

/** Ops that a mask or counts steer, and whose shapes do not depend on these. */
final class MaskOps {
  private MaskOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
            Table.single(
                """
                aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor
                """,
                call -> {
                  checkMask(call);
                  var sizes = IndexOps.indexedSizes(call);
                  Shapes.checkBroadcastsTo("mask", call.tensor("mask").sizes(), sizes);
                  return OpResult.fresh(call.tensor("self").dtype(), sizes);
                }),
            Table.single(
                """
                aten::_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor
                """,
                call -> {
                  checkMask(call);
                  IndexOps.checkPut(call);
                  Shapes.checkBroadcastsTo(
                      "mask", call.tensor("mask").sizes(), IndexOps.indexedSizes(call));
                  return OpResult.fresh(Layouts.preserved(call.tensor("self")));
                }),
            Table.single(
                """
                aten::masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor
                """,
                call -> {
                  checkMask(call);
                  var grad = call.tensor("grad_output");
                  Shapes.broadcast(grad.sizes(), call.tensor("mask").sizes());
                  return OpResult.fresh(grad.dtype(), Shapes.checked(call.integers("sizes")));
                }),
            Table.single(
                """
                aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor
                """,
                MaskOps::counted))
        .flatMap(specs -> specs);
  }

  private static void checkMask(OpCall call) {
    if (call.tensor("mask").dtype() != DType.BOOL) {
      throw new OpTypeException(
          "mask must be bool, not " + call.tensor("mask").dtype().shortName());
    }
  }

  private static OpResult counted(OpCall call) {
    TensorType self = call.tensor("self");
    long bins = call.integer("minlength");
    if (self.rank() != 1 || !Promotion.isIntegral(self.dtype()) || self.dtype() == DType.BOOL) {
      throw new OpTypeException("self must be one row of integers, not " + self);
    }
    if (bins <= 0) {
      throw new OpTypeException(
          "minlength is %s; the shape must not depend on data".formatted(bins),
          "give the number of bins as minlength");
    }
    if (!call.has("weights")) {
      return OpResult.fresh(DType.I64, ImmutableLongArray.of(bins));
    }
    var weights = call.tensor("weights");
    if (!weights.sizes().equals(self.sizes())) {
      throw new OpTypeException(
          "weights are %s, but must be one for each of %s".formatted(weights, self));
    }
    return OpResult.fresh(
        weights.dtype() == DType.F32 ? DType.F32 : DType.F64, ImmutableLongArray.of(bins));
  }
}
