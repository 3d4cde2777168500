package dev.symplan.ir.op.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.function.Function;
import java.util.stream.Stream;

/** Matrix products. */
final class MatrixOps {
  private MatrixOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
        product(
            "aten::mm(Tensor self, Tensor mat2) -> Tensor",
            call -> multiplied(call.tensor("self"), call.tensor("mat2"), 2)),
        product(
            "aten::bmm(Tensor self, Tensor mat2) -> Tensor",
            call -> multiplied(call.tensor("self"), call.tensor("mat2"), 3)),
        product(
            "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1)"
                + " -> Tensor",
            call -> added(call, multiplied(call.tensor("mat1"), call.tensor("mat2"), 2))),
        product(
            "aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar"
                + " alpha=1) -> Tensor",
            call -> added(call, multiplied(call.tensor("batch1"), call.tensor("batch2"), 3))),
        product(
            "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
            MatrixOps::linear));
  }

  private static OpSpec product(String schema, Function<OpCall, OpResult> rule) {
    return OpSpec.of(schema).rule(InferRule.single(rule)).traits(OpTrait.MATMUL);
  }

  private static OpResult multiplied(TensorType left, TensorType right, int rank) {
    if (left.rank() != rank || right.rank() != rank) {
      throw new OpTypeException(
          "operands must have %d dimensions, not %d and %d"
              .formatted(rank, left.rank(), right.rank()));
    }
    if (left.dtype() != right.dtype()) {
      throw new OpTypeException(
          "element types differ: %s and %s"
              .formatted(left.dtype().shortName(), right.dtype().shortName()),
          "convert one with prims::convert_element_type");
    }
    if (rank == 3 && left.size(0) != right.size(0)) {
      throw new OpTypeException(
          "batch sizes differ: %d and %d".formatted(left.size(0), right.size(0)));
    }
    long inner = left.size(rank - 1);
    if (inner != right.size(rank - 2)) {
      throw new OpTypeException(
          "inner sizes differ: %d and %d".formatted(inner, right.size(rank - 2)),
          "%s times %s".formatted(left, right));
    }
    var sizes = left.sizes().toArray();
    sizes[rank - 1] = right.size(rank - 1);
    return OpResult.fresh(left.dtype(), ImmutableLongArray.copyOf(sizes));
  }

  private static OpResult added(OpCall call, OpResult product) {
    var sizes = ((TensorType) product.type()).sizes();
    var self = call.tensor("self");
    if (!Types.broadcast(self.sizes(), sizes).equals(sizes)) {
      throw new OpTypeException(
          "self of shape %s does not broadcast to the product's %s"
              .formatted(Types.text(self.sizes()), Types.text(sizes)));
    }
    return product;
  }

  private static OpResult linear(OpCall call) {
    var input = call.tensor("input");
    var weight = call.tensor("weight");
    if (weight.rank() != 2 || input.rank() < 1) {
      throw new OpTypeException("weight must have 2 dimensions, and input at least 1");
    }
    long inner = input.size(input.rank() - 1);
    if (inner != weight.size(1) || input.dtype() != weight.dtype()) {
      throw new OpTypeException(
          "input %s does not fit weight %s".formatted(input, weight),
          "weight is [out_features, in_features]");
    }
    var sizes = input.sizes().toArray();
    sizes[sizes.length - 1] = weight.size(0);
    return OpResult.fresh(input.dtype(), ImmutableLongArray.copyOf(sizes));
  }
}
