package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Arrays;

/**
 * Norms of the channels of a batch [batch, channels, …] and their gradients (Ioffe, Szegedy 2015).
 * Computed in f64; each result is rounded once.
 */
final class BatchNormKernels {
  private BatchNormKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    return ImmutableMap.of(
        "aten::_native_batch_norm_legit_functional",
        call -> forward(call, call.bool("training"), 3),
        "aten::_batch_norm_with_update_functional",
        call -> forward(call, true, 4),
        "aten::_native_batch_norm_legit.no_stats",
        call -> forward(call, true, -1),
        "aten::_native_batch_norm_legit_no_training",
        call -> forward(call, false, -1),
        "aten::native_batch_norm_backward",
        call -> backward(call, call.bool("train"), "save_invstd"),
        "aten::batch_norm_backward",
        call -> backward(call, call.bool("update"), "save_var"));
  }

  /** {@return one number for each channel, in f64, shaped to broadcast over the batch} */
  private static HostTensor perChannel(HostTensor input) {
    var sizes = new long[input.type().rank()];
    Arrays.fill(sizes, 1);
    sizes[1] = input.type().size(1);
    return HostTensor.allocate(TensorType.contiguous(DType.F64, sizes));
  }

  private static HostTensor perChannel(HostTensor input, HostTensor values) {
    var shaped = perChannel(input);
    channels(shaped).copyFrom(values);
    return shaped;
  }

  private static HostTensor channels(HostTensor shaped) {
    return shaped.as(TensorType.contiguous(shaped.dtype(), shaped.type().numel()));
  }

  private static boolean[] allButChannels(HostTensor input) {
    var gone = new boolean[input.type().rank()];
    Arrays.fill(gone, true);
    gone[1] = false;
    return gone;
  }

  private static void forward(HostCall call, boolean training, int running) {
    var input = call.tensor("input");
    var mean = perChannel(input);
    var variance = perChannel(input);
    if (training) {
      RowsKernel.compute(
          "mean(x); spread(x) / count()",
          ImmutableMap.of("x", input),
          allButChannels(input),
          mean,
          variance);
    } else {
      channels(mean).copyFrom(call.tensor("running_mean"));
      channels(variance).copyFrom(call.tensor("running_var"));
    }
    double eps = call.number("eps");
    var deviation = perChannel(input);
    Pointwise.apply(deviation, Pointwise.unary(v -> 1 / Math.sqrt(v + eps)), variance);
    var normal = HostTensor.allocate(input.type().contiguous().withDType(DType.F64));
    Pointwise.apply(normal, Pointwise.ternary((x, m, r) -> (x - m) * r), input, mean, deviation);
    call.optionalTensor("weight")
        .ifPresent(
            weight ->
                Pointwise.apply(
                    normal, Pointwise.binary((x, w) -> x * w), normal, perChannel(input, weight)));
    call.optionalTensor("bias")
        .ifPresent(
            bias ->
                Pointwise.apply(
                    normal, Pointwise.binary(Double::sum), normal, perChannel(input, bias)));
    store(call, 0, normal);
    store(call, 1, channels(mean));
    store(call, 2, channels(deviation));
    if (running >= 0) {
      double count = (double) input.type().numel() / input.type().size(1);
      update(call, running, "running_mean", training, mean, 1);
      update(call, running + 1, "running_var", training, variance, count / (count - 1));
    }
  }

  private static void update(
      HostCall call, int index, String param, boolean training, HostTensor fresh, double factor) {
    if (!call.hasResult(index)) {
      return;
    }
    double momentum = training ? call.number("momentum") : 0;
    Pointwise.apply(
        call.result(index),
        Pointwise.binary((old, x) -> training ? momentum * factor * x + (1 - momentum) * old : old),
        call.tensor(param),
        channels(fresh));
  }

  private static void store(HostCall call, int index, HostTensor values) {
    if (call.hasResult(index)) {
      call.result(index).copyFrom(values);
    }
  }

  private static void backward(HostCall call, boolean training, String saved) {
    var input = call.tensor("input");
    var grad = call.tensor("grad_out");
    var mean = perChannel(input, call.tensor(training ? "save_mean" : "running_mean"));
    var deviation = perChannel(input, call.tensor(training ? saved : "running_var"));
    if (!training) {
      double eps = call.number("eps");
      Pointwise.apply(deviation, Pointwise.unary(v -> 1 / Math.sqrt(v + eps)), deviation);
    }
    var normal = HostTensor.allocate(input.type().contiguous().withDType(DType.F64));
    Pointwise.apply(normal, Pointwise.ternary((x, m, r) -> (x - m) * r), input, mean, deviation);
    var projections = HostTensor.allocate(normal.type());
    Pointwise.apply(projections, Pointwise.binary((dy, x) -> dy * x), grad, normal);
    var dWeight = sum(projections, input);
    var dBias = sum(grad, input);
    if (call.hasResult(0)) {
      var scale = perChannel(input);
      CreationKernels.fill(scale, 1);
      call.optionalTensor("weight").ifPresent(weight -> channels(scale).copyFrom(weight));
      double count = (double) input.type().numel() / input.type().size(1);
      Pointwise.apply(
          call.result(0),
          (in, out, n) -> {
            for (int i = 0; i < n; i++) {
              double centred =
                  training ? in[0][i] - (in[2][i] + in[1][i] * in[3][i]) / count : in[0][i];
              out[i] = centred * in[4][i] * in[5][i];
            }
          },
          grad,
          normal,
          dBias,
          dWeight,
          deviation,
          scale);
    }
    store(call, 1, channels(dWeight));
    store(call, 2, channels(dBias));
  }

  private static HostTensor sum(HostTensor terms, HostTensor input) {
    var sum = perChannel(input);
    RowsKernel.compute("sum(x)", ImmutableMap.of("x", terms), allButChannels(input), sum);
    return sum;
  }
}
