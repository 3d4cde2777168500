package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Softmax, the norms of layers, and losses, with their backward ops. */
final class NormOps {
  private NormOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
            softmax().map(spec -> spec.traits(OpTrait.ROWWISE)),
            layerNorms(),
            groupNorms(),
            losses())
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> softmax() {
    return Stream.of(
            Table.single(
                """
                aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
                aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
                """,
                NormOps::halfToFloat),
            Table.single(
                """
                aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
                aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
                aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
                """,
                call -> {
                  var self = call.tensor("self");
                  call.dim("dim", self.rank());
                  return OpResult.fresh(
                      checkFloat(call.dtype("dtype").orElse(self.dtype())), self.sizes());
                }),
            Table.single(
                """
                aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor
                aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor
                """,
                call -> {
                  var grad = call.tensor("grad_output");
                  call.dim("dim", grad.rank());
                  checkSameSizes("grad_output", grad, "output", call.tensor("output"));
                  return OpResult.fresh(
                      call.dtype("input_dtype").orElse(grad.dtype()), grad.sizes());
                }))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> layerNorms() {
    return Stream.of(
            Table.ops(
                """
                aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)
                """,
                call -> {
                  var input = checkNormalized(call);
                  var statistics = OpResult.fresh(statisticsType(input), leading(call));
                  return List.of(OpResult.fresh(Layouts.fresh(input)), statistics, statistics);
                }),
            Table.single(
                """
                aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor
                """,
                call -> OpResult.fresh(Layouts.fresh(checkNormalized(call)))),
            Table.single(
                """
                aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor
                """,
                call -> OpResult.fresh(Layouts.fresh(checkNormalized(call)))),
            Table.ops(
                """
                aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)
                """,
                call ->
                    List.of(
                        OpResult.fresh(Layouts.fresh(checkNormalized(call))),
                        OpResult.fresh(statisticsType(call.tensor("input")), leading(call)))),
            Table.ops(
                """
                aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
                """,
                gradients(
                    call ->
                        List.of(
                            Layouts.fresh(checkStatistics(call)),
                            parameter(call),
                            parameter(call)))),
            Table.ops(
                """
                aten::_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, Tensor? weight, bool[2] output_mask) -> (Tensor, Tensor)
                """,
                gradients(call -> List.of(Layouts.fresh(checkStatistics(call)), parameter(call)))))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> groupNorms() {
    return Stream.of(
            Table.ops(
                """
                aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)
                """,
                NormOps::grouped),
            Table.single(
                """
                aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor
                """,
                call -> {
                  var input = call.tensor("input");
                  if (input.rank() < 2) {
                    throw new OpTypeException("input must have 2 dimensions or more: " + input);
                  }
                  checkGroups(input.size(1), call.integer("num_groups"));
                  checkEach(call, "channel", input.size(1), "weight", "bias");
                  return OpResult.fresh(Layouts.fresh(input));
                }),
            Table.ops(
                """
                aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
                """,
                gradients(
                    call -> {
                      var input = checkGrouped(call, "weight");
                      checkSameSizes("grad_out", call.tensor("grad_out"), "input", input);
                      long statistics = Shapes.times(input.size(0), call.integer("group"));
                      for (var name : List.of("mean", "rstd")) {
                        if (call.tensor(name).numel() != statistics) {
                          throw new OpTypeException(
                              "%s is %s, but there are %s groups"
                                  .formatted(name, call.tensor(name), statistics));
                        }
                      }
                      var channel = TensorType.contiguous(input.dtype(), call.integer("C"));
                      return List.of(Layouts.fresh(input), channel, channel);
                    })))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> losses() {
    return Stream.of(
            Table.single(
                """
                aten::mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor
                """,
                NormOps::squaredError),
            Table.single(
                """
                aten::mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor
                """,
                call -> {
                  isReduced(call);
                  var result =
                      Layouts.pointwise(
                          ElementwiseTypes.promoted(call, "self", "target"),
                          List.of(call.tensor("self"), call.tensor("target")));
                  Shapes.checkBroadcastsTo(
                      "grad_output", call.tensor("grad_output").sizes(), result.sizes());
                  return OpResult.fresh(result);
                }),
            Table.ops(
                """
                aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)
                """,
                NormOps::likelihood),
            Table.single(
                """
                aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor
                """,
                NormOps::likelihoodGradient),
            Table.single(
                """
                aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100, float label_smoothing=0.0) -> Tensor
                """,
                NormOps::crossEntropy))
        .flatMap(specs -> specs);
  }

  private static DType checkFloat(DType dtype) {
    if (Promotion.isIntegral(dtype)) {
      throw new OpTypeException(
          "works on floats, not on " + dtype.shortName(),
          "convert with prims::convert_element_type");
    }
    return dtype;
  }

  private static void checkSameSizes(String a, TensorType left, String b, TensorType right) {
    if (!left.sizes().equals(right.sizes())) {
      throw new OpTypeException(
          "%s has the shape %s, but %s has %s"
              .formatted(a, Shapes.text(left.sizes()), b, Shapes.text(right.sizes())));
    }
  }

  private static OpResult halfToFloat(OpCall call) {
    var self = call.tensor("self");
    call.dim("dim", self.rank());
    checkFloat(self.dtype());
    if (!call.bool("half_to_float")) {
      return OpResult.fresh(self.dtype(), self.sizes());
    }
    if (self.dtype() != DType.F16 && self.dtype() != DType.BF16) {
      throw new OpTypeException(
          "half_to_float is for f16 and bf16, not for " + self.dtype().shortName());
    }
    return OpResult.fresh(DType.F32, self.sizes());
  }

  private static TensorType checkNormalized(OpCall call) {
    var input = call.tensor("input");
    var normalized = call.integers("normalized_shape");
    int outer = input.rank() - normalized.length();
    if (normalized.isEmpty()
        || outer < 0
        || !input.sizes().subArray(outer, input.rank()).equals(normalized)) {
      throw new OpTypeException(
          "the shape %s of the input does not end with normalized_shape %s"
              .formatted(Shapes.text(input.sizes()), Shapes.text(normalized)));
    }
    for (var name : List.of("weight", "bias")) {
      if (call.schema().hasParam(name)
          && call.has(name)
          && !call.tensor(name).sizes().equals(normalized)) {
        throw new OpTypeException(
            "%s has the shape %s, but normalized_shape is %s"
                .formatted(name, Shapes.text(call.tensor(name).sizes()), Shapes.text(normalized)));
      }
    }
    return input;
  }

  /** Checks the operands of a gradient: the gradient and a number for each row. */
  private static TensorType checkStatistics(OpCall call) {
    var input = checkNormalized(call);
    checkSameSizes("grad_out", call.tensor("grad_out"), "input", input);
    long rows = TensorType.contiguous(input.dtype(), leading(call)).numel();
    for (var name : List.of("mean", "rstd")) {
      if (call.schema().hasParam(name) && call.tensor(name).numel() != rows) {
        throw new OpTypeException(
            "%s is %s, but the input has %s"
                .formatted(name, call.tensor(name), Units.count(rows, "row")));
      }
    }
    return input;
  }

  /** The shape of the statistics: 1 for each normalized dimension. */
  private static ImmutableLongArray leading(OpCall call) {
    var sizes = call.tensor("input").sizes();
    var result = sizes.toArray();
    for (int i = sizes.length() - call.integers("normalized_shape").length();
        i < sizes.length();
        i++) {
      result[i] = 1;
    }
    return ImmutableLongArray.copyOf(result);
  }

  /** Means of 16-bit floats are kept in f32. */
  private static DType statisticsType(TensorType input) {
    return input.dtype().bytes() < 4 ? DType.F32 : input.dtype();
  }

  private interface Gradients {
    List<TensorType> of(OpCall call);
  }

  /** {@return a rule that leaves out the gradients that {@code output_mask} does not ask for} */
  private static InferRule gradients(Gradients rule) {
    return call -> {
      var types = rule.of(call);
      var mask = mask(call);
      if (mask.size() != types.size()) {
        throw new OpTypeException(
            "output_mask has %s, not %s"
                .formatted(Units.count(mask.size(), "entry"), types.size()));
      }
      return IntStream.range(0, types.size())
          .mapToObj(i -> mask.get(i) ? OpResult.fresh(types.get(i)) : OpResult.none())
          .toList();
    };
  }

  private static List<Boolean> mask(OpCall call) {
    if (call.arg("output_mask") instanceof Arg.Seq seq) {
      return seq.items().stream().map(item -> item.equals(new Arg.Bool(true))).toList();
    }
    throw new OpTypeException("output_mask must be a list of True and False");
  }

  private static TensorType parameter(OpCall call) {
    var dtype = call.has("weight") ? call.tensor("weight").dtype() : call.tensor("input").dtype();
    return TensorType.contiguous(dtype, call.integers("normalized_shape"));
  }

  private static void checkGroups(long channels, long groups) {
    if (groups <= 0 || channels % groups != 0) {
      throw new OpTypeException(
          "%s channels do not divide into %s".formatted(channels, Units.count(groups, "group")));
    }
  }

  /** Checks that the input is [N, C, ...], and that C divides into the groups. */
  private static TensorType checkGrouped(OpCall call, String... channels) {
    var input = call.tensor("input");
    long elements = Shapes.times(call.integer("N"), call.integer("C"));
    if (input.rank() < 2
        || input.size(0) != call.integer("N")
        || input.size(1) != call.integer("C")
        || input.numel() != Shapes.times(elements, call.integer("HxW"))) {
      throw new OpTypeException(
          "input must be [N, C, ...] of N × C × HxW = %s × %s × %s elements, but is %s"
              .formatted(call.integer("N"), call.integer("C"), call.integer("HxW"), input));
    }
    checkGroups(input.size(1), call.integer("group"));
    checkEach(call, "channel", input.size(1), channels);
    return input;
  }

  /** Checks that the parameters that are given are vectors with an element for each of so many. */
  private static void checkEach(OpCall call, String what, long count, String... params) {
    for (var param : params) {
      if (call.has(param) && !call.tensor(param).sizes().equals(ImmutableLongArray.of(count))) {
        throw new OpTypeException(
            "%s is %s, but must have the shape [%s], an element for each %s"
                .formatted(param, call.tensor(param), count, what));
      }
    }
  }

  private static List<OpResult> grouped(OpCall call) {
    var input = checkGrouped(call, "weight", "bias");
    long groups = call.integer("group");
    var statistics = OpResult.fresh(input.dtype(), ImmutableLongArray.of(input.size(0), groups));
    return List.of(OpResult.fresh(Layouts.fresh(input)), statistics, statistics);
  }

  /** PyTorch's {@code at::Reduction}: 0 keeps every element, 1 is the mean, 2 the sum. */
  private static boolean isReduced(OpCall call) {
    long reduction = call.integer("reduction");
    if (reduction < 0 || reduction > 2) {
      throw new OpTypeException(
          "unknown reduction %s".formatted(reduction), "0 is none, 1 the mean, 2 the sum");
    }
    return reduction != 0;
  }

  private static OpResult squaredError(OpCall call) {
    var dtype = ElementwiseTypes.promoted(call, "self", "target");
    var elements = Layouts.pointwise(dtype, List.of(call.tensor("self"), call.tensor("target")));
    return isReduced(call)
        ? OpResult.fresh(dtype, ImmutableLongArray.of())
        : OpResult.fresh(elements);
  }

  private static List<OpResult> likelihood(OpCall call) {
    var self = call.tensor("self");
    var target = call.tensor("target");
    if (self.rank() < 1 || self.rank() > 2 || target.rank() != self.rank() - 1) {
      throw new OpTypeException(
          "self must be [batch, classes] or [classes], and target [batch] or [], not %s and %s"
              .formatted(self, target));
    }
    if (self.rank() == 2 && self.size(0) != target.size(0)) {
      throw new OpTypeException(
          "batch sizes differ: %s and %s".formatted(self.size(0), target.size(0)));
    }
    checkClasses(call, self.size(self.rank() - 1));
    return List.of(
        OpResult.fresh(self.dtype(), isReduced(call) ? ImmutableLongArray.of() : target.sizes()),
        OpResult.fresh(self.dtype(), ImmutableLongArray.of()));
  }

  private static void checkClasses(OpCall call, long classes) {
    checkEach(call, "class", classes, "weight");
    checkIndices("target", call.tensor("target"));
  }

  private static void checkIndices(String name, TensorType type) {
    if (type.dtype() != DType.I64 && type.dtype() != DType.U8) {
      throw new OpTypeException(
          "%s has the number of a class, so it must be i64 or u8, not %s"
              .formatted(name, type.dtype().shortName()));
    }
  }

  private static OpResult likelihoodGradient(OpCall call) {
    likelihood(call);
    var self = call.tensor("self");
    var target = call.tensor("target");
    var grad = call.tensor("grad_output");
    if (isReduced(call) ? grad.numel() != 1 : !grad.sizes().equals(target.sizes())) {
      throw new OpTypeException(
          "grad_output is %s, but the loss has the shape %s"
              .formatted(
                  grad, Shapes.text(isReduced(call) ? ImmutableLongArray.of() : target.sizes())));
    }
    if (call.tensor("total_weight").numel() != 1) {
      throw new OpTypeException(
          "total_weight must have 1 element, but is " + call.tensor("total_weight"));
    }
    return OpResult.fresh(Layouts.fresh(self));
  }

  private static OpResult crossEntropy(OpCall call) {
    var self = call.tensor("self");
    var target = call.tensor("target");
    boolean probabilities = self.sizes().equals(target.sizes());
    int classes = self.rank() == 1 ? 0 : 1;
    if (self.rank() == 0
        || (!probabilities && !Shapes.without(self.sizes(), classes).equals(target.sizes()))) {
      throw new OpTypeException(
          "target is %s, but must be a class for each row of %s, or have its shape"
              .formatted(target, self));
    }
    checkEach(call, "class", self.size(classes), "weight");
    if (!probabilities) {
      checkIndices("target", target);
    } else if (!target.dtype().isFloat()) {
      throw new OpTypeException(
          "target has a probability for each class, so it must be a float, not "
              + target.dtype().shortName());
    }
    return OpResult.fresh(
        self.dtype(),
        isReduced(call) ? ImmutableLongArray.of() : Shapes.without(self.sizes(), classes));
  }
}
