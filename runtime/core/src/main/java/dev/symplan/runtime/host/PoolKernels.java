package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.List;

/** Pooling over windows, and its gradients; sums are kept in f64 and rounded once. */
final class PoolKernels {
  private static final int DIMS = 2;

  private PoolKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    return ImmutableMap.<String, HostKernel>builder()
        .put("aten::max_pool2d_with_indices", call -> largest(call, false))
        .put("prims::_low_memory_max_pool_with_offsets", call -> largest(call, true))
        .put("prims::_low_memory_max_pool_offsets_to_indices", PoolKernels::offsetsToIndices)
        .put("aten::max_pool2d_with_indices_backward", PoolKernels::largestBackward)
        .put("aten::avg_pool2d", PoolKernels::average)
        .put("aten::avg_pool2d_backward", PoolKernels::averageBackward)
        .put("aten::_adaptive_avg_pool2d", PoolKernels::adaptive)
        .put("aten::_adaptive_avg_pool2d_backward", PoolKernels::adaptiveBackward)
        .buildOrThrow();
  }

  private static ImmutableLongArray image(HostTensor tensor) {
    int rank = tensor.type().rank();
    return tensor.type().sizes().subArray(rank - DIMS, rank);
  }

  private static Windows windows(
      HostCall call, ImmutableLongArray image, ImmutableLongArray windows) {
    var kernel = Windows.each(call.integers("kernel_size"), DIMS);
    var stride = call.integers("stride");
    return new Windows(
        kernel,
        stride.isEmpty() ? kernel : Windows.each(stride, DIMS),
        Windows.each(call.integers("padding"), DIMS),
        call.hasParam("dilation")
            ? Windows.each(call.integers("dilation"), DIMS)
            : ImmutableLongArray.of(1, 1),
        image,
        windows);
  }

  private static HostTensor zeros(HostTensor like, DType dtype) {
    return HostTensor.allocate(like.type().contiguous().withDType(dtype));
  }

  /**
   * The largest element of each window, the last NaN of those that have one, and where it is: in
   * the image, or in the window.
   */
  private static void largest(HostCall call, boolean inWindow) {
    var self = call.tensor("self");
    var windows = windows(call, image(self), image(call.result(0)));
    var best = zeros(call.result(0), self.dtype());
    var found = zeros(call.result(0), DType.I64);
    CreationKernels.fill(found, -1);
    var positions = positions(self);
    windows.forEach(
        (position, at, of) -> {
          var value = at.apply(self);
          var old = of.apply(best);
          var index = of.apply(found);
          var here = at.apply(Views.expand(positions, self.type().sizes()));
          // The index first: it says whether the value is to follow.
          Pointwise.apply(
              index,
              (in, out, n) -> {
                for (int i = 0; i < n; i++) {
                  boolean better = in[3][i] < 0 || in[0][i] > in[1][i] || Double.isNaN(in[0][i]);
                  out[i] = better ? (inWindow ? position : in[2][i]) : in[3][i];
                }
              },
              value,
              old,
              here,
              index);
          Pointwise.apply(
              old,
              (in, out, n) -> {
                for (int i = 0; i < n; i++) {
                  boolean moved = in[3][i] == (inWindow ? position : in[2][i]);
                  out[i] = moved ? in[0][i] : in[1][i];
                }
              },
              value,
              old,
              here,
              index);
        });
    if (call.hasResult(0)) {
      call.result(0).copyFrom(best);
    }
    if (call.hasResult(1)) {
      call.result(1).copyFrom(found);
    }
  }

  /** {@return the positions in an image, row by row} */
  private static HostTensor positions(HostTensor like) {
    var image = image(like);
    var positions = HostTensor.allocate(TensorType.contiguous(DType.I64, image));
    var flat = Views.flat(positions);
    for (long i = 0; i < flat.type().numel(); i++) {
      flat.setLong(i, i);
    }
    return positions;
  }

  private static void offsetsToIndices(HostCall call) {
    var offsets = call.tensor("self");
    var windows = windows(call, Windows.each(call.integers("input_size"), DIMS), image(offsets));
    var like = HostTensor.allocate(TensorType.contiguous(DType.I64, windows.image()));
    var positions = positions(like);
    var sizes = offsets.type().sizes();
    var images =
        ImmutableLongArray.builder()
            .addAll(sizes.subArray(0, sizes.length() - DIMS))
            .addAll(windows.image())
            .build();
    var found = zeros(call.result(), DType.I64);
    windows.forEach(
        (position, at, of) ->
            Pointwise.apply(
                of.apply(found),
                Pointwise.ternary((old, offset, here) -> offset == position ? here : old),
                of.apply(found),
                of.apply(offsets),
                at.apply(Views.expand(positions, images))));
    call.result().copyFrom(found);
  }

  private static void largestBackward(HostCall call) {
    var sum = zeros(call.result(), DType.F64);
    int rank = sum.type().rank();
    long area = sum.type().size(rank - 2) * sum.type().size(rank - 1);
    var grad = Views.flat(call.tensor("grad_output"));
    var indices = Views.flat(call.tensor("indices"));
    var flat = Views.flat(sum);
    var windows = image(call.tensor("indices"));
    long perImage = windows.get(0) * windows.get(1);
    for (long i = 0; i < grad.type().numel(); i++) {
      long at = i / perImage * area + IndexedElements.check(indices.getLong(i), area, rank - 1);
      flat.set(flat.get(at) + grad.get(i), at);
    }
    call.result().copyFrom(sum);
  }

  /** {@return the divisor of the sum of each window} */
  private static HostTensor divisors(HostCall call, Windows windows) {
    var divisors = HostTensor.allocate(TensorType.contiguous(DType.F64, windows.windows()));
    for (long row = 0; row < windows.windows().get(0); row++) {
      for (long column = 0; column < windows.windows().get(1); column++) {
        double divisor =
            call.has("divisor_override")
                ? call.integer("divisor_override")
                : extent(call, windows, 0, row) * extent(call, windows, 1, column);
        divisors.set(divisor, row, column);
      }
    }
    return divisors;
  }

  /**
   * A window may reach over the padding, which counts or not, but what is beyond the padding never
   * does.
   */
  private static double extent(HostCall call, Windows windows, int dim, long window) {
    long padding = windows.padding().get(dim);
    long size = windows.image().get(dim);
    long start = window * windows.stride().get(dim) - padding;
    long end = Math.min(start + windows.kernel().get(dim), size + padding);
    return call.bool("count_include_pad") ? end - start : Math.min(end, size) - Math.max(start, 0);
  }

  private static void average(HostCall call) {
    var self = call.tensor("self");
    var windows = windows(call, image(self), image(call.result()));
    var sum = zeros(call.result(), DType.F64);
    windows.forEach(
        (_, at, of) -> {
          var target = of.apply(sum);
          Pointwise.apply(target, Pointwise.binary(Double::sum), target, at.apply(self));
        });
    Pointwise.apply(call.result(), Pointwise.binary((x, n) -> x / n), sum, divisors(call, windows));
  }

  private static void averageBackward(HostCall call) {
    var grad = call.tensor("grad_output");
    var windows = windows(call, image(call.result()), image(grad));
    var shares = zeros(grad, DType.F64);
    Pointwise.apply(shares, Pointwise.binary((x, n) -> x / n), grad, divisors(call, windows));
    var sum = zeros(call.result(), DType.F64);
    windows.forEach(
        (_, at, of) -> {
          var target = at.apply(sum);
          Pointwise.apply(target, Pointwise.binary(Double::sum), target, of.apply(shares));
        });
    call.result().copyFrom(sum);
  }

  private interface Region {
    /**
     * @param region of the image
     * @param pooled its mean's position, as a region of one element
     */
    void run(HostTensor region, HostTensor pooled);
  }

  /** Goes over the regions that an image is cut into; neighbours may overlap. */
  private static void forEachRegion(HostTensor image, HostTensor pooled, Region region) {
    int rank = image.type().rank();
    // Where there is nothing to pool, rows may still be without number.
    long rows = pooled.type().numel() == 0 ? 0 : pooled.type().size(rank - 2);
    long columns = pooled.type().size(rank - 1);
    for (long row = 0; row < rows; row++) {
      for (long column = 0; column < columns; column++) {
        region.run(
            part(part(image, rank - 2, row, rows), rank - 1, column, columns),
            Views.narrow(Views.narrow(pooled, rank - 2, row, 1), rank - 1, column, 1));
      }
    }
  }

  private static HostTensor part(HostTensor image, int dim, long index, long count) {
    long size = image.type().size(dim);
    long start = Math.floorDiv(index * size, count);
    return Views.narrow(image, dim, start, Math.ceilDiv((index + 1) * size, count) - start);
  }

  private static double elements(HostTensor region) {
    return image(region).stream().reduce(1, (a, b) -> a * b);
  }

  private static void adaptive(HostCall call) {
    var means = zeros(call.result(), DType.F64);
    int rank = means.type().rank();
    forEachRegion(
        call.tensor("self"),
        means,
        (region, mean) -> {
          RowsKernel.sum(region, List.of(rank - 2, rank - 1), mean);
          double count = elements(region);
          Pointwise.apply(mean, Pointwise.unary(sum -> sum / count), mean);
        });
    call.result().copyFrom(means);
  }

  private static void adaptiveBackward(HostCall call) {
    var sum = zeros(call.result(), DType.F64);
    forEachRegion(
        sum,
        call.tensor("grad_output"),
        (region, pooled) -> {
          double count = elements(region);
          Pointwise.apply(region, Pointwise.binary((x, g) -> x + g / count), region, pooled);
        });
    call.result().copyFrom(sum);
  }
}
