package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.Convolution;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.function.Function;

/**
 * What a library makes of a convolution, by what the step says of it alone: each product of an
 * element of the large image and one of the weight belongs to one element of the small image.
 */
final class EmulatedConvolution {
  private final Convolution step;
  private final HostTensor large;
  private final HostTensor weight;
  private final HostTensor small;
  private final double[] sums;
  private final double[] sizes;

  private EmulatedConvolution(Convolution step, Function<TensorRef, HostTensor> memory) {
    this.step = step;
    this.large = memory.apply(step.large());
    this.weight = memory.apply(step.weight());
    this.small = memory.apply(step.small());
    int count = Math.toIntExact(result().type().numel());
    this.sums = new double[count];
    this.sizes = new double[count];
    var indices = new long[2 + step.windows().dims()];
    overSmall(indices, 0);
  }

  /** Runs the steps that do without the library, and compares. */
  static void check(Convolution step, Function<TensorRef, HostTensor> memory, Runnable otherwise) {
    var expected = new EmulatedConvolution(step, memory);
    otherwise.run();
    expected.compare();
  }

  private HostTensor result() {
    return switch (step.pass()) {
      case FORWARD -> small;
      case BACKWARD_DATA -> large;
      case BACKWARD_FILTER -> weight;
    };
  }

  private void overSmall(long[] indices, int dim) {
    if (dim == indices.length) {
      overChannels(indices);
      return;
    }
    for (long i = 0; i < small.type().size(dim); i++) {
      indices[dim] = i;
      overSmall(indices, dim + 1);
    }
  }

  private void overChannels(long[] at) {
    long inner = weight.type().size(1);
    long outer = small.type().size(1) / (large.type().size(1) / inner);
    var inLarge = new long[at.length];
    var inWeight = new long[at.length];
    inLarge[0] = at[0];
    inWeight[0] = at[1];
    for (long channel = 0; channel < inner; channel++) {
      inLarge[1] = at[1] / outer * inner + channel;
      inWeight[1] = channel;
      overWindow(at, inLarge, inWeight, 2);
    }
  }

  private void overWindow(long[] at, long[] inLarge, long[] inWeight, int dim) {
    if (dim == at.length) {
      add(at, inLarge, inWeight);
      return;
    }
    var windows = step.windows();
    for (long k = 0; k < weight.type().size(dim); k++) {
      inWeight[dim] = k;
      inLarge[dim] =
          at[dim] * windows.stride().get(dim - 2)
              + k * windows.dilation().get(dim - 2)
              - windows.padding().get(dim - 2);
      if (inLarge[dim] >= 0 && inLarge[dim] < large.type().size(dim)) {
        overWindow(at, inLarge, inWeight, dim + 1);
      }
    }
  }

  private void add(long[] inSmall, long[] inLarge, long[] inWeight) {
    switch (step.pass()) {
      case FORWARD -> add(inSmall, large.get(inLarge) * weight.get(inWeight));
      case BACKWARD_DATA -> add(inLarge, small.get(inSmall) * weight.get(inWeight));
      case BACKWARD_FILTER -> add(inWeight, small.get(inSmall) * large.get(inLarge));
    }
  }

  private void add(long[] at, double product) {
    int flat = 0;
    for (int dim = 0; dim < at.length; dim++) {
      flat = Math.toIntExact(flat * result().type().size(dim) + at[dim]);
    }
    sums[flat] += product;
    sizes[flat] += Math.abs(product);
  }

  private void compare() {
    var actual = result().contiguous();
    var dtype = actual.dtype();
    var at = new long[actual.type().rank()];
    var rounded = HostTensor.allocate(TensorType.contiguous(dtype, 1));
    for (int flat = 0; flat < sums.length; flat++) {
      long rest = flat;
      for (int dim = at.length - 1; dim >= 0; dim--) {
        at[dim] = rest % actual.type().size(dim);
        rest /= actual.type().size(dim);
      }
      rounded.set(sums[flat], 0);
      double allowed = sizes[flat] * 1e-5 + Math.abs(sums[flat]) * step(dtype) + 1e-7;
      // What a type cannot hold becomes infinite.
      boolean overflows = Double.isInfinite(rounded.get(0)) && actual.get(at) == rounded.get(0);
      if (Double.isFinite(sums[flat]) && !overflows) {
        assertThat(Math.abs(actual.get(at) - sums[flat]))
            .as("element %s of '%s': %s, not %s", flat, step.label(), actual.get(at), sums[flat])
            .isLessThanOrEqualTo(allowed);
      }
    }
  }

  /** {@return the largest relative error of rounding to a type} */
  private static double step(DType dtype) {
    return switch (dtype) {
      case BF16 -> 0x1p-8;
      case F16 -> 0x1p-11;
      default -> 0x1p-24;
    };
  }
}
