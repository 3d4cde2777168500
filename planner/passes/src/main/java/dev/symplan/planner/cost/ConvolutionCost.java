package dev.symplan.planner.cost;

import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.ConvolutionOps;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.machine.Compute;
import dev.symplan.planner.machine.LibraryConvolution;
import java.util.List;

/**
 * The times of convolutions and their gradients, which cuDNN computes as products. The constants
 * were fitted to the times of an H100 in {@code docs/figures/convolutions-h100.txt}.
 */
final class ConvolutionCost {

  /** Rates against those of large products: of 16 bits, of f32, and of gradients in f32. */
  private static final double NARROW_RATE = 0.45;

  private static final double WIDE_RATE = 0.8;
  private static final double WIDE_GRADIENT_RATE = 0.4;

  /** Groups of fewer channels go by the ordinary cores, whatever their type is. */
  private static final long MIN_CHANNELS = 8;

  /** What a copy into another layout costs against one of as many bytes. */
  private static final double COPY_COST = 1.4;

  /** TFLOP/s of our kernels, which compute what cuDNN does not take. */
  private static final double GENERATED_RATE = 4;

  private static final double GENERATED_FILTER_RATE = 0.6;

  private ConvolutionCost() {}

  /** {@return the computing time in microseconds} */
  static double micros(Op op, Compute compute) {
    boolean backward = ConvolutionOps.isBackward(op.def());
    double images = op.flops();
    double filter = 0;
    if (backward && isMade(op, 1)) {
      filter = isMade(op, 0) ? images / 2 : images;
      images -= filter;
    }
    if (!byLibrary(op)) {
      return images / (1e6 * GENERATED_RATE) + filter / (1e6 * GENERATED_FILTER_RATE);
    }
    return (images + filter) / (1e6 * rate(op, backward, compute));
  }

  private static double rate(Op op, boolean backward, Compute compute) {
    boolean narrow = isNarrow(op) && channels(op) >= MIN_CHANNELS;
    return narrow
        ? NARROW_RATE * compute.matrixRate()
        : (backward ? WIDE_GRADIENT_RATE : WIDE_RATE) * compute.matrixF32Rate();
  }

  /**
   * {@return the bytes that copies of memory move in as long as all copies into other layouts take}
   * The kernels of 16-bit floats know images whose channels are innermost, and none knows gaps.
   */
  static long copiedBytes(Op op) {
    if (!byLibrary(op)) {
      return 0;
    }
    boolean turns = isNarrow(op) && channels(op) >= MIN_CHANNELS;
    double bytes = 0;
    for (var image : images(op)) {
      if (!LibraryConvolution.hasLayout(image)) {
        bytes += COPY_COST * 2 * image.bytes();
      }
      if (turns && !LibraryConvolution.hasChannelsInnermost(image)) {
        bytes += COPY_COST * 2 * image.bytes();
      }
    }
    boolean both = ConvolutionOps.isBackward(op.def()) && isMade(op, 0) && isMade(op, 1);
    return (long) (both ? 2 * bytes : bytes);
  }

  private static boolean byLibrary(Op op) {
    var images = images(op);
    return LibraryConvolution.suits(images.get(0), op.call().tensor("weight"), images.get(1));
  }

  /** {@return the input and what the convolution gives, or the gradient of that} */
  private static List<TensorType> images(Op op) {
    return List.of(
        op.call().tensor("input"),
        ConvolutionOps.isBackward(op.def())
            ? op.call().tensor("grad_output")
            : op.result().tensor());
  }

  private static boolean isMade(Op op, int result) {
    Value value = op.results().get(result);
    return value.isTensor();
  }

  private static boolean isNarrow(Op op) {
    var dtype = op.call().tensor("weight").dtype();
    return dtype == DType.F16 || dtype == DType.BF16;
  }

  /** {@return the channels of a group, of the image that has the fewer} */
  private static long channels(Op op) {
    var weight = op.call().tensor("weight");
    return Math.min(weight.size(1), weight.size(0) / Math.max(1, op.call().integer("groups")));
  }
}
