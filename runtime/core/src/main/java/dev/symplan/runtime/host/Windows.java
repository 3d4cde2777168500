package dev.symplan.runtime.host;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The windows that slide over the last dimensions of an image.
 *
 * <p>Goes over the positions of a window, and for each gives the elements of the image that stand
 * there in all windows at once, next to these windows.
 *
 * @param kernel the sizes of a window
 * @param padding the positions before the image; they hold nothing
 * @param image the sizes of the image in these dimensions
 * @param windows the number of windows along each
 */
record Windows(
    ImmutableLongArray kernel,
    ImmutableLongArray stride,
    ImmutableLongArray padding,
    ImmutableLongArray dilation,
    ImmutableLongArray image,
    ImmutableLongArray windows) {

  /** The work at one position of the window. */
  interface Position {
    /**
     * @param position counted row by row
     * @param image takes the elements at this position out of a tensor that ends with the image's
     *     dimensions
     * @param windows takes the windows that have an element there out of a tensor that ends with
     *     the windows' dimensions
     */
    void run(long position, UnaryOperator<HostTensor> image, UnaryOperator<HostTensor> windows);
  }

  /** {@return an entry for each of {@code dims} dimensions of a list that may have one for all} */
  static ImmutableLongArray each(ImmutableLongArray list, int dims) {
    var each = ImmutableLongArray.builder(dims);
    for (int i = 0; i < dims; i++) {
      each.add(list.get(list.length() == 1 ? 0 : i));
    }
    return each.build();
  }

  int dims() {
    return kernel.length();
  }

  /** {@return the number of positions of a window} */
  long area() {
    return kernel.stream().reduce(1, (a, b) -> a * b);
  }

  void forEach(Position position) {
    for (long at = 0; at < area(); at++) {
      var start = new long[dims()];
      var first = new long[dims()];
      var count = new long[dims()];
      boolean any = true;
      long rest = at;
      for (int i = dims() - 1; i >= 0; i--) {
        long offset = rest % kernel.get(i) * dilation.get(i) - padding.get(i);
        rest /= kernel.get(i);
        first[i] = Math.max(0, Math.ceilDiv(-offset, stride.get(i)));
        long end =
            Math.min(windows.get(i), Math.floorDiv(image.get(i) - 1 - offset, stride.get(i)) + 1);
        count[i] = end - first[i];
        start[i] = first[i] * stride.get(i) + offset;
        any &= count[i] > 0;
      }
      if (any) {
        position.run(
            at,
            tensor -> slice(tensor, start, count, stride.toArray()),
            tensor -> slice(tensor, first, count, null));
      }
    }
  }

  private static HostTensor slice(
      HostTensor tensor, long[] start, long[] count, long @Nullable [] step) {
    var part = tensor;
    int outer = tensor.type().rank() - start.length;
    for (int i = 0; i < start.length; i++) {
      part = Views.slice(part, outer + i, start[i], count[i], step == null ? 1 : step[i]);
    }
    return part;
  }

  /**
   * Copies every window into a column.
   *
   * @param columns [channels, position, windows …], zeros before
   */
  void unfold(HostTensor channels, HostTensor columns) {
    forEach(
        (position, image, windows) ->
            windows.apply(Views.select(columns, 1, position)).copyFrom(image.apply(channels)));
  }

  /** Adds every column to the elements of its window. */
  void fold(HostTensor columns, HostTensor channels) {
    forEach(
        (position, image, windows) -> {
          var target = image.apply(channels);
          Pointwise.apply(
              target,
              Pointwise.binary(Double::sum),
              target,
              windows.apply(Views.select(columns, 1, position)));
        });
  }
}
