package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.stream.Stream;

/** Pooling over windows of images [batch, channels, height, width], and its gradients. */
final class PoolOps {
  private static final int DIMS = 2;

  private PoolOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
            Table.ops(
                """
                aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)
                """,
                call -> largest(call, DType.I64)),
            Table.ops(
                """
                prims::_low_memory_max_pool_with_offsets(Tensor self, SymInt[] kernel_size, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool ceil_mode) -> (Tensor, Tensor)
                """,
                call -> {
                  checkArea(call);
                  return largest(call, DType.I8);
                }),
            Table.single(
                """
                prims::_low_memory_max_pool_offsets_to_indices(Tensor self, SymInt[] kernel_size, SymInt[] input_size, SymInt[] stride, SymInt[] padding, SymInt[] dilation) -> Tensor
                """,
                call -> {
                  checkOffsets(call);
                  var self = call.tensor("self");
                  return OpResult.fresh(Layouts.preserved(self).withDType(DType.I64));
                }),
            Table.single(
                """
                aten::max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor
                """,
                call -> {
                  checkSizes(call, pooled(call).sizes());
                  var self = call.tensor("self");
                  return OpResult.fresh(Images.typeLike(List.of(self), self.sizes()));
                }),
            Table.single(
                """
                aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor
                """,
                call -> {
                  checkDivisor(call);
                  return OpResult.fresh(pooled(call));
                }),
            Table.single(
                """
                aten::avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor
                """,
                call -> {
                  checkDivisor(call);
                  checkSizes(call, pooled(call).sizes());
                  var self = call.tensor("self");
                  return OpResult.fresh(Images.typeLike(List.of(self), self.sizes()));
                }),
            Table.single(
                """
                aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor
                """,
                call -> {
                  var self = image(call);
                  Images.checkFloat(self);
                  var sizes = call.integers("output_size");
                  if (sizes.length() != DIMS) {
                    throw new OpTypeException(
                        "output_size is %s, but must be two numbers".formatted(Shapes.text(sizes)));
                  }
                  return OpResult.fresh(
                      Images.typeLike(
                          List.of(self),
                          Shapes.checked(
                              Shapes.join(self.sizes().subArray(0, self.rank() - DIMS), sizes))));
                }),
            Table.single(
                """
                aten::_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor
                """,
                call -> {
                  var self = image(call);
                  Images.checkFloat(self);
                  var grad = call.tensor("grad_output");
                  int outer = self.rank() - DIMS;
                  if (grad.rank() != self.rank()
                      || !grad.sizes().subArray(0, outer).equals(self.sizes().subArray(0, outer))) {
                    throw new OpTypeException(
                        "grad_output is %s, which is not the shape of a pooling of %s"
                            .formatted(grad, self));
                  }
                  return OpResult.fresh(Images.typeLike(List.of(self), self.sizes()));
                }))
        .flatMap(specs -> specs);
  }

  private static TensorType image(OpCall call) {
    var self = call.tensor("self");
    if (self.rank() != 3 && self.rank() != 4) {
      throw new OpTypeException("self must be [batch, channels, height, width], not " + self);
    }
    for (int i = self.rank() - 3; i < self.rank(); i++) {
      if (self.size(i) == 0) {
        throw new OpTypeException("dimension %s of %s has no elements".formatted(i, self));
      }
    }
    return self;
  }

  private static TensorType pooled(OpCall call) {
    var self = image(call);
    int outer = self.rank() - DIMS;
    var sizes = ImmutableLongArray.builder(self.rank()).addAll(self.sizes().subArray(0, outer));
    for (int i = 0; i < DIMS; i++) {
      sizes.add(outputSize(call, i, self.size(outer + i)));
    }
    return Images.typeLike(List.of(self), sizes.build());
  }

  private static long outputSize(OpCall call, int dim, long size) {
    long kernel = Images.entry(call, "kernel_size", dim, DIMS, 1);
    long stride =
        call.integers("stride").isEmpty() ? kernel : Images.entry(call, "stride", dim, DIMS, 1);
    long padding = Images.entry(call, "padding", dim, DIMS, 0);
    long dilation =
        call.schema().hasParam("dilation") ? Images.entry(call, "dilation", dim, DIMS, 1) : 1;
    if (padding > kernel / 2) {
      throw new OpTypeException(
          "padding %s is more than half of the kernel's size %s".formatted(padding, kernel));
    }
    long room = size + 2 * padding - Shapes.times(dilation, kernel - 1) - 1;
    boolean ceil = call.bool("ceil_mode");
    long count = Math.floorDiv(room + (ceil ? stride - 1 : 0), stride) + 1;
    // The last window must begin inside the image or its left padding.
    if (ceil && (count - 1) * stride >= size + padding) {
      count--;
    }
    if (count < 1) {
      throw new OpTypeException(
          "a window of size %s does not fit a size of %s".formatted(kernel, size));
    }
    return count;
  }

  private static List<OpResult> largest(OpCall call, DType index) {
    var type = pooled(call);
    return List.of(OpResult.fresh(type), OpResult.fresh(type.withDType(index)));
  }

  private static void checkSizes(OpCall call, ImmutableLongArray sizes) {
    var grad = call.tensor("grad_output");
    if (!grad.sizes().equals(sizes)) {
      throw new OpTypeException(
          "grad_output has the shape %s, but the pooled image has %s"
              .formatted(Shapes.text(grad.sizes()), Shapes.text(sizes)));
    }
    if (call.schema().hasParam("indices") && call.tensor("indices").dtype() != DType.I64) {
      throw new OpTypeException(
          "indices must be i64, not " + call.tensor("indices").dtype().shortName());
    }
    if (call.schema().hasParam("indices") && !call.tensor("indices").sizes().equals(sizes)) {
      throw new OpTypeException(
          "indices has the shape %s, but grad_output has %s"
              .formatted(Shapes.text(call.tensor("indices").sizes()), Shapes.text(sizes)));
    }
  }

  /** The position in a window is kept in 8 bits. */
  private static void checkArea(OpCall call) {
    long area =
        Shapes.times(
            Images.entry(call, "kernel_size", 0, DIMS, 1),
            Images.entry(call, "kernel_size", 1, DIMS, 1));
    if (area > Byte.MAX_VALUE) {
      throw new OpTypeException(
          "a window has %s, but at most 127 are supported".formatted(Units.count(area, "element")));
    }
  }

  private static void checkOffsets(OpCall call) {
    var self = call.tensor("self");
    if (self.rank() < DIMS || !Promotion.isIntegral(self.dtype())) {
      throw new OpTypeException(
          "self must be integers [batch, channels, height, width], not " + self);
    }
    checkArea(call);
    for (int i = 0; i < DIMS; i++) {
      Images.entry(call, "input_size", i, DIMS, 1);
      Images.entry(call, "stride", i, DIMS, 1);
      Images.entry(call, "padding", i, DIMS, 0);
      Images.entry(call, "dilation", i, DIMS, 1);
    }
  }

  private static void checkDivisor(OpCall call) {
    Images.checkFloat(call.tensor("self"));
    if (call.has("divisor_override") && call.integer("divisor_override") == 0) {
      throw new OpTypeException("divisor_override must not be 0");
    }
  }
}
