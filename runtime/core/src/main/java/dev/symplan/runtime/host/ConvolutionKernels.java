package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Convolutions as matrix products with unfolded images; a transposed one is the gradient of the
 * other. Kept in f32 (f64 for f64) and rounded once.
 */
final class ConvolutionKernels {
  private ConvolutionKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    return ImmutableMap.of(
        "aten::convolution",
        ConvolutionKernels::forward,
        "aten::convolution_backward",
        ConvolutionKernels::backward,
        "aten::im2col",
        ConvolutionKernels::unfold,
        "aten::col2im",
        ConvolutionKernels::fold);
  }

  /**
   * A convolution that is not transposed, from a large image to a small one.
   *
   * @param weight [small channels, large channels of a group, kernel …]
   */
  private record Problem(Windows windows, HostTensor weight, int groups, DType dtype) {

    static Problem of(HostCall call, HostTensor large, HostTensor small) {
      var weight = call.tensor("weight");
      int dims = weight.type().rank() - 2;
      var windows =
          new Windows(
              weight.type().sizes().subArray(2, dims + 2),
              Windows.each(call.integers("stride"), dims),
              Windows.each(call.integers("padding"), dims),
              Windows.each(call.integers("dilation"), dims),
              large.type().sizes().subArray(2, dims + 2),
              small.type().sizes().subArray(2, dims + 2));
      var dtype = MatrixProduct.wide(weight.dtype());
      return new Problem(
          windows, widened(weight, dtype), Math.toIntExact(call.integer("groups")), dtype);
    }

    long outer() {
      return weight.type().size(0) / groups;
    }

    long inner() {
      return weight.type().size(1);
    }

    long area() {
      return windows.windows().stream().reduce(1, (a, b) -> a * b);
    }

    /** {@return the weights of a group as a matrix [small channels, large channels × positions]} */
    HostTensor matrix(HostTensor weights, long group) {
      return Views.reshaped(
          Views.narrow(weights, 0, group * outer(), outer()), outer(), inner() * windows.area());
    }

    HostTensor group(HostTensor image, long item, long group, long channels) {
      return Views.narrow(Views.select(image, 0, item), 0, group * channels, channels);
    }

    HostTensor flatGroup(HostTensor small, long item, long group) {
      return Views.reshaped(group(small, item, group, outer()), outer(), area());
    }

    private HostTensor columns() {
      var sizes = new ArrayList<Long>(List.of(inner(), windows.area()));
      sizes.addAll(windows.windows().asList());
      return HostTensor.allocate(TensorType.contiguous(dtype, ImmutableLongArray.copyOf(sizes)));
    }

    private HostTensor asMatrix(HostTensor columns) {
      return Views.reshaped(columns, inner() * windows.area(), area());
    }

    private HostTensor unfolded(HostTensor large, long item, long group) {
      var columns = columns();
      windows.unfold(group(large, item, group, inner()), columns);
      return asMatrix(columns);
    }

    /** Both images are in the wide type; the result is row-major. */
    void convolve(HostTensor large, HostTensor small) {
      for (long item = 0; item < large.type().size(0); item++) {
        for (long group = 0; group < groups; group++) {
          MatrixProduct.multiply(
              matrix(weight, group), unfolded(large, item, group), flatGroup(small, item, group));
        }
      }
    }

    /** The gradient of the large image; the result is row-major and holds zeros. */
    void transpose(HostTensor small, HostTensor large) {
      for (long item = 0; item < large.type().size(0); item++) {
        for (long group = 0; group < groups; group++) {
          var columns = columns();
          MatrixProduct.multiply(
              Views.transpose(matrix(weight, group), 0, 1),
              flatGroup(small, item, group),
              asMatrix(columns));
          windows.fold(columns, group(large, item, group, inner()));
        }
      }
    }

    /** {@return the gradient of the weights} */
    HostTensor gradient(HostTensor large, HostTensor small) {
      var gradient = HostTensor.allocate(weight.type().contiguous());
      for (long item = 0; item < large.type().size(0); item++) {
        for (long group = 0; group < groups; group++) {
          var sum = matrix(gradient, group);
          var product = HostTensor.allocate(sum.type());
          MatrixProduct.multiply(
              flatGroup(small, item, group),
              Views.transpose(unfolded(large, item, group), 0, 1),
              product);
          Pointwise.apply(sum, Pointwise.binary(Double::sum), sum, product);
        }
      }
      return gradient;
    }
  }

  private static HostTensor widened(HostTensor tensor, DType dtype) {
    return tensor.copyAs(tensor.type().contiguous().withDType(dtype));
  }

  private static void forward(HostCall call) {
    var dtype = MatrixProduct.wide(call.tensor("input").dtype());
    var input = widened(call.tensor("input"), dtype);
    var output = MatrixProduct.wide(call.result().type());
    if (call.bool("transposed")) {
      Problem.of(call, output, input).transpose(input, output);
    } else {
      Problem.of(call, input, output).convolve(input, output);
    }
    call.optionalTensor("bias")
        .ifPresent(
            bias -> {
              var shaped = bias;
              for (int i = 2; i < output.type().rank(); i++) {
                shaped = Views.unsqueeze(shaped, shaped.type().rank());
              }
              Pointwise.apply(output, Pointwise.binary(Double::sum), output, shaped);
            });
    call.result().copyFrom(output);
  }

  private static void backward(HostCall call) {
    var dtype = MatrixProduct.wide(call.tensor("input").dtype());
    var input = widened(call.tensor("input"), dtype);
    var grad = widened(call.tensor("grad_output"), dtype);
    boolean transposed = call.bool("transposed");
    var problem = transposed ? Problem.of(call, grad, input) : Problem.of(call, input, grad);
    if (call.hasResult(0)) {
      var gradient = HostTensor.allocate(input.type());
      if (transposed) {
        problem.convolve(grad, gradient);
      } else {
        problem.transpose(grad, gradient);
      }
      call.result(0).copyFrom(gradient);
    }
    if (call.hasResult(1)) {
      call.result(1)
          .copyFrom(transposed ? problem.gradient(grad, input) : problem.gradient(input, grad));
    }
    if (call.hasResult(2)) {
      var others = IntStream.range(0, grad.type().rank()).filter(dim -> dim != 1).boxed().toList();
      RowsKernel.sum(grad, others, call.result(2));
    }
  }

  /** The last two dimensions of {@code image}; what comes before them is [batch, channels]. */
  private static Windows windows(HostCall call, ImmutableLongArray image) {
    var kernel = Windows.each(call.integers("kernel_size"), 2);
    var stride = Windows.each(call.integers("stride"), 2);
    var padding = Windows.each(call.integers("padding"), 2);
    var dilation = Windows.each(call.integers("dilation"), 2);
    var count = ImmutableLongArray.builder(2);
    for (int i = 0; i < 2; i++) {
      long room = image.get(i) + 2 * padding.get(i) - dilation.get(i) * (kernel.get(i) - 1) - 1;
      count.add(Math.floorDiv(room, stride.get(i)) + 1);
    }
    return new Windows(kernel, stride, padding, dilation, image, count.build());
  }

  /** {@return a tensor with a batch} */
  private static HostTensor batched(HostTensor tensor, int rank) {
    return tensor.type().rank() < rank ? Views.unsqueeze(tensor, 0) : tensor;
  }

  private static void unfold(HostCall call) {
    var self = batched(call.tensor("self"), 4);
    var windows = windows(call, self.type().sizes().subArray(2, 4));
    var columns =
        HostTensor.allocate(
            TensorType.contiguous(
                self.dtype(),
                self.type().size(0),
                self.type().size(1),
                windows.area(),
                windows.windows().get(0),
                windows.windows().get(1)));
    for (long item = 0; item < self.type().size(0); item++) {
      windows.unfold(Views.select(self, 0, item), Views.select(columns, 0, item));
    }
    call.result().copyFrom(columns.as(call.result().type().contiguous()));
  }

  private static void fold(HostCall call) {
    var result = batched(call.result(), 4);
    var windows = windows(call, result.type().sizes().subArray(2, 4));
    var self =
        Views.reshaped(
            call.tensor("self"),
            result.type().size(0),
            result.type().size(1),
            windows.area(),
            windows.windows().get(0),
            windows.windows().get(1));
    var sum = HostTensor.allocate(result.type().contiguous().withDType(DType.F64));
    for (long item = 0; item < result.type().size(0); item++) {
      windows.fold(Views.select(self, 0, item), Views.select(sum, 0, item));
    }
    result.copyFrom(sum);
  }
}
