package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import java.util.stream.Stream;

/** Ops that find between which boundaries elements are. */
final class SearchOps {
  private SearchOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
            Table.single(
                """
                aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor
                """,
                SearchOps::bucketed),
            Table.single(
                """
                aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor
                """,
                SearchOps::searched),
            Table.single(
                """
                aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor
                """,
                SearchOps::counted))
        .flatMap(specs -> specs);
  }

  private static OpResult counted(OpCall call) {
    long bins = call.integer("bins");
    if (bins <= 0) {
      throw new OpTypeException("bins is %s, but must be positive".formatted(bins));
    }
    var min = call.arg("min").number().map(Number::doubleValue);
    var max = call.arg("max").number().map(Number::doubleValue);
    if (min.isPresent() && max.isPresent() && min.get() > max.get()) {
      throw new OpTypeException(
          "'max' must be at least %s, but is %s".formatted(min.get(), max.get()));
    }
    return OpResult.fresh(call.tensor("self").dtype(), ImmutableLongArray.of(bins));
  }

  private static OpResult bucketed(OpCall call) {
    var boundaries = call.tensor("boundaries");
    if (boundaries.rank() != 1) {
      throw new OpTypeException("boundaries must have 1 dimension, but is " + boundaries);
    }
    return positions(call);
  }

  private static OpResult searched(OpCall call) {
    var sorted = call.tensor("sorted_sequence");
    var leading = sorted.sizes().subArray(0, Math.max(0, sorted.rank() - 1));
    if (sorted.rank() != 1 && !isForRowsOfSelf(call, leading)) {
      throw new OpTypeException(
          "sorted_sequence must have 1 dimension, or all dimensions of self but the last, not %s"
              .formatted(sorted));
    }
    if (call.has("sorter")
        && !(call.tensor("sorter").sizes().equals(sorted.sizes())
            && call.tensor("sorter").dtype() == DType.I64)) {
      throw new OpTypeException(
          "sorter must be i64%s, like sorted_sequence, not %s"
              .formatted(Shapes.text(sorted.sizes()), call.tensor("sorter")));
    }
    if (call.has("side")) {
      var side = call.string("side");
      if (!side.equals("right") && (!side.equals("left") || call.bool("right"))) {
        throw new OpTypeException("side is '%s', which does not go with right".formatted(side));
      }
    }
    return positions(call);
  }

  private static boolean isForRowsOfSelf(OpCall call, ImmutableLongArray leading) {
    var self = call.tensor("self");
    return call.tensor("sorted_sequence").rank() > 0
        && self.rank() == leading.length() + 1
        && self.sizes().subArray(0, leading.length()).equals(leading);
  }

  private static OpResult positions(OpCall call) {
    return OpResult.fresh(
        call.bool("out_int32") ? DType.I32 : DType.I64, call.tensor("self").sizes());
  }
}
