package dev.symplan.planner.verify;

import dev.symplan.ir.TensorType;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.plan.CollectivePlan;
import java.util.Comparator;
import java.util.stream.IntStream;

/** The layouts in which collectives move their operands. */
final class OperandRows {
  private OperandRows() {}

  /** An elementwise collective may have any layout without gaps, if the result has it too. */
  static boolean movesAsOne(TensorType operand, TensorType result) {
    return operand.isDense()
        && operand.sizes().equals(result.sizes())
        && operand.dtype() == result.dtype()
        && (operand.strides().equals(result.strides())
            || (operand.isContiguous() && result.isContiguous()));
  }

  /**
   * {@return whether a variant goes through an operand row by row, with memory between the rows} It
   * reads them in the order of the elements, those of a slice by themselves.
   *
   * @param op the collective
   * @param ranks of its group
   */
  static boolean moves(CollectivePlan collective, Op op, TensorType operand, int ranks) {
    var kind = collective.kind();
    if (kind == Kind.CUSTOM
        || !collective.spec().readsRows()
        || operand.numel() == 0
        || !isOneToOne(operand)) {
      return false;
    }
    var call = op.collective().orElseThrow();
    boolean sliced = kind == Kind.REDUCE_SCATTER || kind == Kind.ALL_TO_ALL;
    int dim = sliced ? call.sliceDims().operand() : 0;
    boolean cut = sliced && dim > 0;
    return collective.spec().readsRowsInAnyOrder()
        || (distances(operand, dim, 1) <= 1 && (!cut || distances(operand, dim, ranks) <= 1));
  }

  /**
   * Whether no two elements share memory: each dimension steps over all that is in smaller steps.
   */
  private static boolean isOneToOne(TensorType type) {
    var dims =
        IntStream.range(0, type.rank())
            .filter(dim -> type.size(dim) > 1)
            .boxed()
            .sorted(Comparator.comparingLong(type::stride))
            .toList();
    long end = 1;
    for (int dim : dims) {
      if (type.stride(dim) < end) {
        return false;
      }
      end += (type.size(dim) - 1) * type.stride(dim);
    }
    return true;
  }

  /**
   * {@return at how many distances rows of elements side by side lie, if a dimension is one of as
   * many parts}
   */
  private static int distances(TensorType type, int cut, int parts) {
    int distances = 0;
    // The step that would go on where all elements so far are one row, or rows at one distance.
    long next = 1;
    for (int dim = type.rank() - 1; dim >= 0; dim--) {
      long size = dim == cut ? type.size(dim) / parts : type.size(dim);
      if (size != 1) {
        if (type.stride(dim) != next) {
          distances++;
        }
        next = type.stride(dim) * size;
      }
    }
    return distances;
  }
}
