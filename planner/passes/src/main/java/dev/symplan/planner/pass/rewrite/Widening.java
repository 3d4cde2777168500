package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.pass.analysis.Analyses;
import java.util.Optional;

/**
 * A conversion of short floats to f32, of which only a reduction reads the result. The reduction
 * can take what is converted: it computes in f32 anyway, so the sums are the same, bit for bit.
 *
 * @param op the position of the conversion
 * @param narrow the tensor that it converts; it may lie in memory otherwise than the f32, but its
 *     elements are in the same order
 */
record Widening(int op, Value narrow) {

  /** The scatter of several tensors that converts what it reduces. */
  static final String SCATTER_OF_SEVERAL = "symplan::reduce_scatter_coalesced";

  /** Ops that convert all elements of a tensor to another type. */
  static final ImmutableSet<OpDef> CONVERSIONS =
      ImmutableSet.of(
          BuiltinOps.registry().get("aten::_to_copy"),
          BuiltinOps.registry().get("prims::convert_element_type"));

  /**
   * {@return the conversion that makes a tensor}
   *
   * @param wide the tensor
   * @param reader the only op that may read it
   * @param until the op before which nothing may write what is converted
   */
  static Optional<Widening> of(Value wide, int reader, int until, Analyses graph, DataFlow flow) {
    var aliases = graph.aliases();
    int storage = aliases.id(wide);
    int maker = storage < 0 ? DataFlow.NONE : aliases.storage(storage).def();
    if (maker == DataFlow.NONE
        || wide.tensor().dtype() != DType.F32
        || !aliases.isWhole(wide)
        || flow.onlyReader(storage) != reader
        || flow.mayWrite(maker + 1, until)) {
      return Optional.empty();
    }
    var op = graph.graph().ops().get(maker);
    return CONVERSIONS.contains(op.def())
        ? Optional.of(new Widening(maker, op.operands().getFirst()))
            .filter(widening -> widening.isOf(op.result().tensor(), wide.tensor()))
        : Optional.empty();
  }

  /** Whether short floats have elements in the order in which the result is read. */
  private boolean isOf(TensorType made, TensorType read) {
    var type = narrow.tensor();
    boolean isShort = type.dtype() == DType.BF16 || type.dtype() == DType.F16;
    boolean alike =
        isContiguous(made)
            ? isContiguous(read)
            : read.sizes().equals(made.sizes()) && read.strides().equals(made.strides());
    return isShort && alike;
  }

  private static boolean isContiguous(TensorType type) {
    return type.strides().equals(TensorType.contiguousStrides(type.sizes()));
  }
}
