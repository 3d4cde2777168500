package dev.symplan.planner.pass.rewrite;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.TensorType;

/**
 * The types of ranks' shares of a contiguous tensor: runs of indices of the first dimension that
 * has several, so that they are contiguous, too.
 */
final class ShareTypes {
  private ShareTypes() {}

  /** {@return the dimension that is divided; the number of dimensions if all have one index} */
  static int dim(ImmutableLongArray sizes) {
    int dim = 0;
    while (dim < sizes.length() && sizes.get(dim) == 1) {
      dim++;
    }
    return dim;
  }

  /** {@return whether a tensor is of rows that divide among ranks} */
  static boolean divides(TensorType type, int ranks) {
    int dim = dim(type.sizes());
    return type.isContiguous() && dim < type.rank() - 1 && type.size(dim) % ranks == 0;
  }

  /** {@return the type of a share} */
  static TensorType of(TensorType type, int dim, int ranks) {
    return type.part(dim, type.size(dim) / ranks).contiguous();
  }
}
