package dev.symplan.planner.machine;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.List;
import java.util.stream.Stream;

/**
 * Decides by types which convolutions may go to cuDNN: those of floats. It knows tensors without
 * gaps, row-major or with the channels innermost; others are copied for it. If cuDNN has no kernel,
 * this shows when a session opens.
 */
public final class LibraryConvolution {

  /** Some of cuDNN's kernels count elements in 32 bits. */
  private static final long MAX_ELEMENTS = Integer.MAX_VALUE;

  private LibraryConvolution() {}

  /**
   * {@return whether cuDNN may have a kernel} All tensors have the dimensions [batch, channels, …].
   */
  public static boolean suits(TensorType large, TensorType weight, TensorType small) {
    return Stream.of(large, weight, small)
        .allMatch(
            type ->
                type.dtype() == large.dtype()
                    && isFloat(type.dtype())
                    && type.numel() > 0
                    && type.numel() <= MAX_ELEMENTS);
  }

  /** {@return whether cuDNN knows the layout} */
  public static boolean hasLayout(TensorType type) {
    return type.isContiguous() || hasChannelsInnermost(type);
  }

  private static boolean isFloat(DType dtype) {
    return dtype == DType.F32 || dtype == DType.F64 || dtype == DType.F16 || dtype == DType.BF16;
  }

  /** {@return the type without gaps, with the channels innermost if they are} */
  public static TensorType dense(TensorType type) {
    boolean innermost = type.size(1) > 1 && type.stride(1) > 0;
    for (int dim = 0; dim < type.rank(); dim++) {
      innermost &= type.size(dim) == 1 || type.stride(dim) >= type.stride(1);
    }
    return innermost ? type.withStrides(channelsInnermost(type.sizes())) : type.contiguous();
  }

  /**
   * {@return the type with the strides that cuDNN knows its layout by, which may differ where a
   * dimension has one element}
   *
   * @param type has such a layout
   * @param all the tensors of the convolution, which have one layout if they can
   */
  public static TensorType canonical(TensorType type, List<TensorType> all) {
    boolean rowMajor =
        type.isContiguous()
            && (all.stream().allMatch(TensorType::isContiguous)
                || !all.stream().allMatch(LibraryConvolution::hasChannelsInnermost));
    return type.withStrides(
        rowMajor ? TensorType.contiguousStrides(type.sizes()) : channelsInnermost(type.sizes()));
  }

  /** {@return whether the elements lie so without gaps; strides of size-1 dims do not count} */
  public static boolean hasChannelsInnermost(TensorType type) {
    var wanted = channelsInnermost(type.sizes());
    for (int dim = 0; dim < type.rank(); dim++) {
      if (type.size(dim) != 1 && type.stride(dim) != wanted.get(dim)) {
        return false;
      }
    }
    return true;
  }

  private static ImmutableLongArray channelsInnermost(ImmutableLongArray sizes) {
    var strides = new long[sizes.length()];
    strides[1] = 1;
    long next = sizes.get(1);
    for (int dim = sizes.length() - 1; dim > 1; dim--) {
      strides[dim] = next;
      next *= sizes.get(dim);
    }
    strides[0] = next;
    return ImmutableLongArray.copyOf(strides);
  }
}
