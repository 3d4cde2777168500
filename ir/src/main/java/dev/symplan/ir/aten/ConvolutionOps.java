package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.stream.Stream;

/**
 * Convolutions of images [batch, channels, …] with 1 to 3 dimensions, and their gradients.
 *
 * <p>Weights are [out channels, channels of a group, kernel …], of transposed convolutions [in
 * channels, out channels of a group, kernel …].
 */
public final class ConvolutionOps {
  private static final int MAX_DIMS = 3;

  private ConvolutionOps() {}

  /** {@return whether an op is a convolution, or gives the gradients of one} */
  public static boolean is(OpDef def) {
    return def.has(OpTrait.CONVOLUTION);
  }

  /** {@return whether a convolution gives gradients} */
  public static boolean isBackward(OpDef def) {
    return def.name().name().endsWith("_backward");
  }

  static Stream<OpSpec> all() {
    return Stream.of(
            Table.single(
                    """
                    aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor
                    """,
                    call -> OpResult.fresh(convolved(call)))
                .map(spec -> spec.flops(ConvolutionOps::flops).traits(OpTrait.CONVOLUTION)),
            Table.ops(
                    """
                    aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
                    """,
                    ConvolutionOps::gradients)
                .map(spec -> spec.flops(ConvolutionOps::flops).traits(OpTrait.CONVOLUTION)),
            Table.single(
                """
                aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor
                """,
                ConvolutionOps::unfolded),
            Table.single(
                """
                aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor
                """,
                ConvolutionOps::folded))
        .flatMap(specs -> specs);
  }

  /**
   * Each element of the image that has one for each window takes the weights of its channel: in the
   * convolution, and in the gradients of input and weight.
   */
  private static double flops(OpCall call, TensorType result) {
    var weight = call.tensor("weight");
    boolean transposed = call.bool("transposed");
    boolean backward = isBackward(call.def());
    var small = transposed ? call.tensor("input") : backward ? call.tensor("grad_output") : result;
    int products = 1;
    if (backward) {
      boolean[] mask = Images.mask(call, 3);
      products = (mask[0] ? 1 : 0) + (mask[1] ? 1 : 0);
    }
    return 2.0 * products * small.numel() * weight.numel() / Math.max(1, weight.size(0));
  }

  private static TensorType convolved(OpCall call) {
    var input = call.tensor("input");
    var weight = call.tensor("weight");
    int dims = input.rank() - 2;
    if (dims < 1 || dims > MAX_DIMS || weight.rank() != input.rank()) {
      throw new OpTypeException(
          "input must be [batch, channels, …] with 1 to 3 more dimensions, and weight as many,"
              + " not %s and %s".formatted(input, weight));
    }
    if (input.dtype() != weight.dtype()) {
      throw new OpTypeException(
          "input is %s, but weight is %s"
              .formatted(input.dtype().shortName(), weight.dtype().shortName()),
          "convert one with prims::convert_element_type");
    }
    Images.checkFloat(input);
    boolean transposed = call.bool("transposed");
    long channels = checkGroups(call, input, weight, transposed);
    if (call.has("bias") && !call.tensor("bias").sizes().equals(ImmutableLongArray.of(channels))) {
      throw new OpTypeException(
          "bias is %s, but must have one number for each of %s"
              .formatted(call.tensor("bias"), Units.count(channels, "channel")));
    }
    var sizes = ImmutableLongArray.builder(input.rank()).add(input.size(0)).add(channels);
    for (int i = 0; i < dims; i++) {
      sizes.add(outputSize(call, i, dims, input.size(i + 2), weight.size(i + 2), transposed));
    }
    return Images.typeLike(List.of(input, weight), sizes.build());
  }

  private static long checkGroups(
      OpCall call, TensorType input, TensorType weight, boolean transposed) {
    long groups = call.integer("groups");
    if (groups < 1) {
      throw new OpTypeException("groups is %s, but must be positive".formatted(groups));
    }
    long own = transposed ? weight.size(0) : Shapes.times(weight.size(1), groups);
    if (own != input.size(1) || weight.size(0) % groups != 0) {
      throw new OpTypeException(
          "weight %s in %s does not fit %s input channels"
              .formatted(weight, Units.count(groups, "group"), input.size(1)));
    }
    return transposed ? Shapes.times(weight.size(1), groups) : weight.size(0);
  }

  private static long outputSize(
      OpCall call, int dim, int dims, long input, long kernel, boolean transposed) {
    long stride = Images.entry(call, "stride", dim, dims, 1);
    long padding = Images.entry(call, "padding", dim, dims, 0);
    long dilation = Images.entry(call, "dilation", dim, dims, 1);
    long reach = Shapes.times(dilation, kernel - 1);
    long added = Images.entry(call, "output_padding", dim, dims, 0);
    if (transposed && added >= Math.max(stride, dilation)) {
      throw new OpTypeException(
          "output_padding is %s, but must be smaller than stride %s or dilation %s"
              .formatted(added, stride, dilation));
    }
    long size =
        transposed
            ? Shapes.times(input - 1, stride) - 2 * padding + reach + added + 1
            : Math.floorDiv(input + 2 * padding - reach - 1, stride) + 1;
    if (size <= 0 || kernel < 1) {
      throw new OpTypeException(
          "a kernel of size %s does not fit dimension %s of size %s"
              .formatted(kernel, dim + 2, input));
    }
    return size;
  }

  private static List<OpResult> gradients(OpCall call) {
    var input = call.tensor("input");
    var weight = call.tensor("weight");
    var grad = call.tensor("grad_output");
    // The rule of the forward op reads no bias here.
    var forward = forwardSizes(call);
    if (!grad.sizes().equals(forward)) {
      throw new OpTypeException(
          "grad_output has the shape %s, but the convolution gives %s"
              .formatted(Shapes.text(grad.sizes()), Shapes.text(forward)));
    }
    boolean[] mask = Images.mask(call, 3);
    var operands = List.of(input, weight);
    return List.of(
        mask[0] ? OpResult.fresh(Images.typeLike(operands, input.sizes())) : OpResult.none(),
        mask[1] ? OpResult.fresh(Images.typeLike(operands, weight.sizes())) : OpResult.none(),
        mask[2]
            ? OpResult.fresh(input.dtype(), ImmutableLongArray.of(grad.size(1)))
            : OpResult.none());
  }

  private static ImmutableLongArray forwardSizes(OpCall call) {
    var def = BuiltinOps.registry().get("aten::convolution");
    var args = ImmutableList.<Arg>builder();
    for (var param : def.schema().params()) {
      args.add(param.name().equals("bias") ? Arg.None.NONE : call.arg(param.name()));
    }
    return convolved(new OpCall(def, args.build())).sizes();
  }

  /** The number of positions of a window. */
  private static long positions(OpCall call, int dim, long size) {
    long reach =
        Shapes.times(
            Images.entry(call, "dilation", dim, 2, 1),
            Images.entry(call, "kernel_size", dim, 2, 1) - 1);
    long room = size + 2 * Images.entry(call, "padding", dim, 2, 0) - reach - 1;
    long count = Math.floorDiv(room, Images.entry(call, "stride", dim, 2, 1)) + 1;
    if (count < 1) {
      throw new OpTypeException("the window does not fit a size of %s".formatted(size));
    }
    return count;
  }

  private static long kernelArea(OpCall call) {
    return Shapes.times(
        Images.entry(call, "kernel_size", 0, 2, 1), Images.entry(call, "kernel_size", 1, 2, 1));
  }

  private static OpResult unfolded(OpCall call) {
    var self = call.tensor("self");
    int channel = self.rank() - 3;
    if (channel != 0 && channel != 1) {
      throw new OpTypeException("self must be [batch, channels, height, width], not " + self);
    }
    long rows = Shapes.times(self.size(channel), kernelArea(call));
    long columns =
        Shapes.times(
            positions(call, 0, self.size(channel + 1)), positions(call, 1, self.size(channel + 2)));
    var sizes = self.sizes().subArray(0, channel);
    return OpResult.fresh(self.dtype(), Shapes.join(sizes, ImmutableLongArray.of(rows, columns)));
  }

  private static OpResult folded(OpCall call) {
    var self = call.tensor("self");
    int row = self.rank() - 2;
    if (row != 0 && row != 1) {
      throw new OpTypeException("self must be [batch, rows, columns], not " + self);
    }
    long area = kernelArea(call);
    long height = Images.entry(call, "output_size", 0, 2, 1);
    long width = Images.entry(call, "output_size", 1, 2, 1);
    long columns = Shapes.times(positions(call, 0, height), positions(call, 1, width));
    if (area == 0 || self.size(row) % area != 0 || self.size(row + 1) != columns) {
      throw new OpTypeException(
          "self is %s, but must have rows of %s numbers and %s columns"
              .formatted(self, area, columns));
    }
    var sizes = self.sizes().subArray(0, row);
    return OpResult.fresh(
        self.dtype(),
        Shapes.join(sizes, ImmutableLongArray.of(self.size(row) / area, height, width)));
  }
}
