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
 * @param source the tensor that the ranks then send, with other sizes: contiguous, or in rows with
 *     something else between them; of shorter floats than the target, if these are converted before
 *     they are reduced
 * @param sizes the sizes with which it is sent
 * @param dims the dimensions along which the slices lie
 * @param resultSizes the sizes of the tensor that the ranks then get
 * @param target the value that takes its place in the graph, contiguous
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
    ImmutableIntArray copies)
    implements Fold {

  /** {@return the bytes of a row, where slices have most of them} */
  long rowBytes() {
    long all = Math.max(product(sizes, sizes.length()), product(resultSizes, resultSizes.length()));
    long rows = Math.max(product(sizes, dims.operand()), product(resultSizes, dims.result()));
    return all / ranks / rows * source.tensor().dtype().bytes();
  }

  private static long product(ImmutableLongArray sizes, int count) {
    return sizes.subArray(0, count).stream().reduce(1, (a, b) -> a * b);
  }

  @Override
  public boolean isLike(Fold other) {
    return other instanceof LayoutFold fold
        && sizes.equals(fold.sizes)
        && dims.equals(fold.dims)
        && source.tensor().dtype() == fold.source.tensor().dtype()
        && target.tensor().dtype() == fold.target.tensor().dtype();
  }
}
