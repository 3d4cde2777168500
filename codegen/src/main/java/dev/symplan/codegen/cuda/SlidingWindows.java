package dev.symplan.codegen.cuda;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.TensorType;
import java.util.stream.IntStream;

/**
 * The windows of a convolution, a number for each dimension of the image over which they slide.
 *
 * @param stride from one window to the next
 * @param padding of the image, on both sides
 * @param dilation from one element of a window to the next
 */
public record SlidingWindows(
    ImmutableLongArray stride, ImmutableLongArray padding, ImmutableLongArray dilation) {

  public SlidingWindows {
    if (padding.length() != stride.length()
        || dilation.length() != stride.length()
        || stride.stream().anyMatch(value -> value < 1)
        || padding.stream().anyMatch(value -> value < 0)
        || dilation.stream().anyMatch(value -> value < 1)) {
      throw new IllegalArgumentException(
          "windows with strides %s, padding %s, dilation %s".formatted(stride, padding, dilation));
    }
  }

  /** {@return the number of dimensions} */
  public int dims() {
    return stride.length();
  }

  /** {@return how many windows of a size there are in an image; 0 or less if none fits} */
  public long count(int dim, long image, long size) {
    long room = image + 2 * padding.get(dim) - dilation.get(dim) * (size - 1) - 1;
    return Math.floorDiv(room, stride.get(dim)) + 1;
  }

  /** {@return whether they slide over a large image, and a small one has an element for each} */
  boolean fit(TensorType large, TensorType weight, TensorType small) {
    return large.rank() == dims() + 2
        && weight.rank() == large.rank()
        && small.rank() == large.rank()
        && large.size(0) == small.size(0)
        && weight.size(0) == small.size(1)
        && weight.size(1) > 0
        && large.size(1) % weight.size(1) == 0
        && small.size(1) % Math.max(1, large.size(1) / weight.size(1)) == 0
        && IntStream.range(0, dims())
            .allMatch(
                dim ->
                    count(dim, large.size(dim + 2), weight.size(dim + 2)) == small.size(dim + 2));
  }

  /** {@return whether windows of this size have one element, and some of the image lies between} */
  boolean areApart(ImmutableLongArray size) {
    return size.stream().allMatch(elements -> elements == 1)
        && padding.stream().allMatch(elements -> elements == 0)
        && stride.stream().anyMatch(elements -> elements > 1);
  }

  SlidingWindows withoutStride() {
    var ones = ImmutableLongArray.copyOf(stride.stream().map(_ -> 1));
    return new SlidingWindows(ones, padding, dilation);
  }

  /** {@return the same with one dimension more, in which images and windows have one element} */
  SlidingWindows withDimension() {
    return new SlidingWindows(before(1, stride), before(0, padding), before(1, dilation));
  }

  private static ImmutableLongArray before(long first, ImmutableLongArray values) {
    return ImmutableLongArray.builder().add(first).addAll(values).build();
  }

  /** {@return for example {@code stride [2, 2], padding [1, 1], dilation [1, 1]}} */
  @Override
  public String toString() {
    return "stride %s, padding %s, dilation %s".formatted(stride, padding, dilation);
  }
}
