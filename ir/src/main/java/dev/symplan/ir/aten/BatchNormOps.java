package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableList;
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

/** Norms of the channels of a batch [batch, channels, …], in their functional forms. */
final class BatchNormOps {
  private static final List<String> PER_CHANNEL =
      List.of(
          "weight", "bias", "running_mean", "running_var", "save_mean", "save_invstd", "save_var");

  private BatchNormOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
            Table.ops(
                """
                aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)
                """,
                call -> withRunning(call, normed(call))),
            Table.ops(
                """
                aten::_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)
                """,
                call ->
                    withRunning(
                        call,
                        ImmutableList.<OpResult>builder()
                            .addAll(normed(call))
                            .add(OpResult.fresh(DType.U8, ImmutableLongArray.of(0)))
                            .build())),
            Table.ops(
                """
                aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)
                aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)
                """,
                BatchNormOps::normed),
            Table.ops(
                """
                aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
                aten::batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor reserve) -> (Tensor, Tensor, Tensor)
                """,
                BatchNormOps::gradients))
        .flatMap(specs -> specs);
  }

  private static long channels(OpCall call) {
    var input = call.tensor("input");
    if (input.rank() < 2 || Promotion.isIntegral(input.dtype())) {
      throw new OpTypeException("input must be floats [batch, channels, …], not " + input);
    }
    for (var name : PER_CHANNEL) {
      if (call.schema().hasParam(name) && call.has(name)) {
        var type = call.tensor(name);
        if (!type.sizes().equals(ImmutableLongArray.of(input.size(1)))) {
          throw new OpTypeException(
              "%s is %s, but must have one number for each of %s"
                  .formatted(name, type, Units.count(input.size(1), "channel")));
        }
      }
    }
    return input.size(1);
  }

  /** Statistics of 16-bit floats are kept in f32. */
  private static DType statisticsType(TensorType input) {
    return input.dtype().bytes() < 4 ? DType.F32 : input.dtype();
  }

  /** The statistics that are kept for the gradients; GPUs keep them outside training too. */
  private static ImmutableList<OpResult> normed(OpCall call) {
    var input = call.tensor("input");
    var statistics = OpResult.fresh(statisticsType(input), ImmutableLongArray.of(channels(call)));
    return ImmutableList.of(
        OpResult.fresh(Images.typeLike(List.of(input), input.sizes())), statistics, statistics);
  }

  private static List<OpResult> withRunning(OpCall call, ImmutableList<OpResult> results) {
    return ImmutableList.<OpResult>builder()
        .addAll(results)
        .add(OpResult.fresh(Layouts.preserved(call.tensor("running_mean"))))
        .add(OpResult.fresh(Layouts.preserved(call.tensor("running_var"))))
        .build();
  }

  private static List<OpResult> gradients(OpCall call) {
    var input = call.tensor("input");
    long channels = channels(call);
    if (!call.tensor("grad_out").sizes().equals(input.sizes())) {
      throw new OpTypeException(
          "grad_out has the shape %s, but input has %s"
              .formatted(Shapes.text(call.tensor("grad_out").sizes()), Shapes.text(input.sizes())));
    }
    boolean update = call.schema().hasParam("update");
    boolean training = call.bool(update ? "update" : "train");
    var needed =
        training
            ? List.of("save_mean", update ? "save_var" : "save_invstd")
            : List.of("running_mean", "running_var");
    for (var name : needed) {
      if (!call.has(name)) {
        throw new OpTypeException("'%s' must be given here".formatted(name));
      }
    }
    boolean[] mask = Images.mask(call, 3);
    var dtype = call.has("weight") ? call.tensor("weight").dtype() : input.dtype();
    var parameter = OpResult.fresh(dtype, ImmutableLongArray.of(channels));
    return List.of(
        mask[0] ? OpResult.fresh(Images.typeLike(List.of(input), input.sizes())) : OpResult.none(),
        mask[1] ? parameter : OpResult.none(),
        mask[2] ? parameter : OpResult.none());
  }
}
