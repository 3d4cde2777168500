package dev.symplan.ir.aten;

import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.stream.Stream;

/** Ops that give nothing and only check. */
final class GuardOps {
  private GuardOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
            Table.ops(
                """
                aten::_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()
                """,
                GuardOps::checkMetadata),
            Table.ops(
                """
                aten::_assert_async(Tensor self) -> ()
                aten::_assert_async.msg(Tensor self, str assert_msg) -> ()
                aten::_assert_scalar(Scalar self, str assert_msg) -> ()
                """,
                call -> List.of(),
                OpTrait.SIDE_EFFECT))
        .flatMap(specs -> specs);
  }

  /** All that this op checks is known now, so that nothing is left of it at run time. */
  private static List<OpResult> checkMetadata(OpCall call) {
    var type = call.tensor("a");
    boolean dtypeFits = call.dtype("dtype").map(dtype -> dtype == type.dtype()).orElse(true);
    boolean sizeFits = !call.has("size") || call.integers("size").equals(type.sizes());
    boolean strideFits = !call.has("stride") || call.integers("stride").equals(type.strides());
    if (!dtypeFits || !sizeFits || !strideFits) {
      throw new OpTypeException("the tensor is " + type);
    }
    return List.of();
  }
}
