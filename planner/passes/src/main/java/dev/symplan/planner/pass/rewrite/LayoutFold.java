package dev.symplan.planner.pass.rewrite;

import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.SliceDims;

/**
 * A collective that can do without the copies around it, as it can move slices along other
 * dimensions.
 *
 * @param collective its number
 * @param ranks how many slices there are
 * @param source what the ranks then send: contiguous, and seen with other sizes
 * @param sizes the sizes with which it is sent
 * @param dims the dimensions along which the slices lie
 * @param resultSizes the sizes of what the ranks then get
 * @param target what stands for that in the graph, contiguous
 * @param copies the ops that are left out
 */
record LayoutFold(
    int collective,
    int ranks,
    Value source,
    ImmutableLongArray sizes,
    SliceDims dims,
    ImmutableLongArray resultSizes,
    Value target,
    ImmutableIntArray copies) {

  /** {@return whether another rank's collective moves its slices in the same way} */
  boolean isLike(LayoutFold other) {
    return sizes.equals(other.sizes)
        && dims.equals(other.dims)
        && source.tensor().dtype() == other.source.tensor().dtype();
  }
}
