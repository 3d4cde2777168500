package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.stream.Stream;

/** Gated linear units: one half of a dimension gates the other. */
final class GluOps {
  private GluOps() {}

  static Stream<OpSpec> all() {
    return Stream.concat(
        Table.single(
            """
            aten::glu(Tensor self, int dim=-1) -> Tensor
            """,
            call -> {
              var self = floats(call.tensor("self"));
              var half = new TensorType(self.dtype(), halved(call), self.strides(), self.space());
              return OpResult.fresh(Layouts.pointwise(self.dtype(), List.of(half, half)));
            }),
        Table.single(
            """
            aten::glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor
            """,
            call -> {
              var self = floats(call.tensor("self"));
              var grad = call.tensor("grad_output");
              if (!grad.sizes().equals(halved(call))) {
                throw new OpTypeException(
                    "grad_output is %s, but must be half of %s".formatted(grad, self));
              }
              return OpResult.fresh(self.dtype(), self.sizes());
            }));
  }

  private static TensorType floats(TensorType type) {
    if (Promotion.isIntegral(type.dtype())) {
      throw new OpTypeException(
          "works on floats, not on " + type.dtype().shortName(),
          "convert with prims::convert_element_type");
    }
    return type;
  }

  private static ImmutableLongArray halved(OpCall call) {
    var self = call.tensor("self");
    if (self.rank() == 0) {
      throw new OpTypeException("self has no dimension to split in half");
    }
    int dim = call.dim("dim", self.rank());
    if (self.size(dim) % 2 != 0) {
      throw new OpTypeException(
          "dimension %s of %s cannot be split in half".formatted(dim, self),
          "its size must be even");
    }
    return Shapes.with(self.sizes(), dim, self.size(dim) / 2);
  }
}
