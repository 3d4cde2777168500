package dev.symplan.planner.verify;

import dev.symplan.ir.TensorType;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.plan.CollectivePlan;

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
   * {@return whether a variant goes through an operand row by row, with memory between the rows}
   * Each slice is whole rows, or the same part of every row.
   *
   * @param op the collective
   */
  static boolean moves(CollectivePlan collective, Op op, TensorType operand) {
    var kind = collective.kind();
    int dim = op.collective().orElseThrow().sliceDims().operand();
    boolean sliced = kind == Kind.REDUCE_SCATTER || kind == Kind.ALL_TO_ALL;
    if (kind == Kind.CUSTOM || !collective.spec().readsRows() || operand.numel() == 0) {
      return false;
    }
    for (int inner = 1; inner <= operand.rank(); inner++) {
      if (areRows(operand, inner)) {
        return !sliced
            || before(operand, dim) == 1
            || before(operand, dim) == before(operand, inner);
      }
    }
    return false;
  }

  /** Whether the dimensions from one on are rows without gaps, and those before count the rows. */
  private static boolean areRows(TensorType type, int inner) {
    long row = type.numel() / before(type, inner);
    long pitch = 0;
    long within = row;
    long rows = before(type, inner);
    for (int dim = 0; dim < type.rank(); dim++) {
      if (type.size(dim) == 1) {
        continue;
      }
      if (dim < inner) {
        rows /= type.size(dim);
        // The last of them steps from row to row, the others over as many rows as they count.
        pitch = pitch == 0 ? type.stride(dim) / rows : pitch;
        if (type.stride(dim) != pitch * rows) {
          return false;
        }
      } else {
        within /= type.size(dim);
        if (type.stride(dim) != within) {
          return false;
        }
      }
    }
    return pitch > row;
  }

  private static long before(TensorType type, int dim) {
    return type.sizes().subArray(0, dim).stream().reduce(1, (a, b) -> a * b);
  }
}
