package dev.symplan.ir.op;

import dev.symplan.ir.TensorType;

/**
 * The dimensions along which the slices lie that a collective moves: equal parts of a contiguous
 * tensor, one for each rank of the group, in the order of the ranks.
 *
 * @param operand the dimension of what a rank sends to each of the others
 * @param result the dimension of what it gets from each of them
 */
public record SliceDims(int operand, int result) {

  /** All slices lie one after the other. */
  public static final SliceDims FIRST = new SliceDims(0, 0);

  public SliceDims {
    if (operand < 0 || result < 0) {
      throw new IllegalArgumentException("dimensions count from 0: " + operand + ", " + result);
    }
  }

  /** {@return whether each slice of both tensors is contiguous} */
  public boolean areRuns(TensorType operandType, TensorType resultType) {
    return rows(operandType, operand) <= 1 && rows(resultType, result) <= 1;
  }

  /** {@return of how many rows a slice along a dimension is, at equal distances in memory} */
  public static long rows(TensorType type, int dim) {
    long rows = 1;
    for (int i = 0; i < dim; i++) {
      rows *= type.size(i);
    }
    return rows;
  }
}
