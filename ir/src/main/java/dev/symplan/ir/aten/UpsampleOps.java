package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.stream.Stream;

/** Nearest and bilinear interpolation of images [batch, channels, height, width]. */
final class UpsampleOps {
  private static final int DIMS = 2;

  private UpsampleOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
            Table.single(
                """
                aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor
                aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
                """,
                call -> resized(call, "self", call.integers("output_size"))),
            Table.single(
                """
                aten::upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor
                aten::upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor
                """,
                call -> resized(call, "input", outputSize(call))),
            Table.single(
                """
                aten::upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor
                aten::upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor
                """,
                UpsampleOps::gradient))
        .flatMap(specs -> specs);
  }

  private static ImmutableLongArray outputSize(OpCall call) {
    if (call.has("output_size") == call.has("scale_factors")) {
      throw new OpTypeException("give either output_size or scale_factors");
    }
    if (call.has("output_size")) {
      return call.integers("output_size");
    }
    var input = call.tensor("input");
    if (!(call.arg("scale_factors") instanceof Arg.Seq(ImmutableList<Arg> factors))
        || factors.size() != DIMS
        || input.rank() != DIMS + 2) {
      throw new OpTypeException("scale_factors must be two numbers, for height and width");
    }
    var sizes = ImmutableLongArray.builder(DIMS);
    for (int i = 0; i < DIMS; i++) {
      sizes.add(
          factors.get(i) instanceof Arg.Float(double factor)
              ? (long) (input.size(i + 2) * factor)
              : 0);
    }
    return sizes.build();
  }

  private static OpResult resized(OpCall call, String param, ImmutableLongArray size) {
    var input = call.tensor(param);
    if (input.dtype() != DType.U8) {
      Images.checkFloat(input);
    }
    if (input.rank() != DIMS + 2 || size.length() != DIMS) {
      throw new OpTypeException(
          "%s must be [batch, channels, height, width] and the new size two numbers, not %s and %s"
              .formatted(param, input, Shapes.text(size)));
    }
    checkPositive(input.sizes().subArray(2, 4));
    checkPositive(size);
    return OpResult.fresh(
        Images.typeLike(List.of(input), Shapes.join(input.sizes().subArray(0, 2), size)));
  }

  private static void checkPositive(ImmutableLongArray size) {
    if (size.stream().anyMatch(n -> n <= 0)) {
      throw new OpTypeException("an image of size %s has no elements".formatted(Shapes.text(size)));
    }
  }

  private static OpResult gradient(OpCall call) {
    var grad = call.tensor("grad_output");
    Images.checkFloat(grad);
    var input = call.integers("input_size");
    var output = call.integers("output_size");
    checkPositive(output);
    if (input.length() != DIMS + 2
        || output.length() != DIMS
        || !grad.sizes().equals(Shapes.join(input.subArray(0, 2), output))) {
      throw new OpTypeException(
          "grad_output is %s, which is not the shape of %s resized to %s"
              .formatted(grad, Shapes.text(input), Shapes.text(output)));
    }
    checkPositive(input.subArray(2, 4));
    return OpResult.fresh(Images.typeLike(List.of(grad), input));
  }
}
