package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.runtime.host.Pointwise.Ternary;
import java.util.List;
import java.util.function.DoubleBinaryOperator;
import java.util.function.DoubleUnaryOperator;

/** Activation functions and their gradients. */
final class ActivationKernels {
  /** PyTorch takes the factor in f32, whatever the type is. */
  private static final double SIXTH = 1f / 6f;

  private static final double SELU_ALPHA = 1.6732632423543772848170429916717;
  private static final double SELU_SCALE = 1.0507009873554804934193349852946;

  /** A gradient as a function of the incoming gradient and of the operand or result. */
  private interface Gradient {
    DoubleBinaryOperator of(HostCall call);
  }

  private final ImmutableMap.Builder<String, HostKernel> table = ImmutableMap.builder();

  private ActivationKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var kernels = new ActivationKernels();
    kernels.forward();
    kernels.withParameters();
    kernels.backward();
    kernels.backwardWithParameters();
    kernels.combinations();
    return kernels.table.buildOrThrow();
  }

  private void forward() {
    unary("silu", x -> x * SpecialFunctions.sigmoid(x));
    unary("mish", SpecialFunctions::mish);
    unary("selu", x -> SELU_SCALE * (x > 0 ? x : SELU_ALPHA * Math.expm1(x)));
    unary("hardsigmoid", x -> Math.min(Math.max(x + 3, 0), 6) / 6);
    unary("hardswish", x -> x * Math.min(Math.max(x + 3, 0), 6) / 6);
    table.put(
        "aten::gelu",
        call -> run(call, isTanh(call) ? SpecialFunctions::tanhGelu : SpecialFunctions::gelu));
  }

  private static boolean isTanh(HostCall call) {
    return call.string("approximate").equals("tanh");
  }

  private void withParameters() {
    table.put(
        "aten::celu",
        call -> {
          double alpha = call.number("alpha");
          run(call, x -> x > 0 ? x : alpha * Math.expm1(x / alpha));
        });
    table.put(
        "aten::elu",
        call -> {
          double alpha = call.number("alpha") * call.number("scale");
          double scale = call.number("scale");
          double input = call.number("input_scale");
          run(call, x -> x > 0 ? x * scale : alpha * Math.expm1(x * input));
        });
    table.put(
        "aten::leaky_relu",
        call -> {
          double slope = call.number("negative_slope");
          run(call, x -> x > 0 ? x : x * slope);
        });
    table.put(
        "aten::softplus",
        call -> {
          double beta = call.number("beta");
          double threshold = call.number("threshold");
          run(call, x -> x * beta > threshold ? x : SpecialFunctions.softplus(x * beta) / beta);
        });
    table.put(
        "aten::logit",
        call -> {
          double eps = call.has("eps") ? call.number("eps") : -1;
          run(
              call,
              x -> {
                double p = eps < 0 ? x : Math.min(Math.max(x, eps), 1 - eps);
                return Math.log(p / (1 - p));
              });
        });
  }

  private void backward() {
    gradient("sigmoid_backward", "output", _ -> (grad, y) -> grad * (1 - y) * y);
    gradient("tanh_backward", "output", _ -> (grad, y) -> grad * (1 - y * y));
    gradient(
        "silu_backward",
        "self",
        _ ->
            (grad, x) -> {
              double sigmoid = SpecialFunctions.sigmoid(x);
              return grad * sigmoid * (1 + x * (1 - sigmoid));
            });
    gradient("mish_backward", "self", _ -> (grad, x) -> grad * SpecialFunctions.mishGradient(x));
    gradient(
        "gelu_backward",
        "self",
        call ->
            isTanh(call)
                ? (grad, x) -> grad * SpecialFunctions.tanhGeluGradient(x)
                : (grad, x) -> grad * SpecialFunctions.geluGradient(x));
    gradient("hardsigmoid_backward", "self", _ -> (grad, x) -> x > -3 && x < 3 ? grad * SIXTH : 0);
    gradient(
        "hardswish_backward",
        "self",
        _ -> (grad, x) -> x <= -3 ? 0 : x < 3 ? grad * (x / 3 + 0.5) : grad);
    gradient("log_sigmoid_backward", "self", _ -> (grad, x) -> grad * SpecialFunctions.sigmoid(-x));
  }

  private void backwardWithParameters() {
    gradient(
        "threshold_backward",
        "self",
        call -> {
          double threshold = call.number("threshold");
          return (grad, x) -> x <= threshold ? 0 : grad;
        });
    gradient(
        "hardtanh_backward",
        "self",
        call -> {
          double min = call.number("min_val");
          double max = call.number("max_val");
          return (grad, x) -> x <= min || x >= max ? 0 : grad;
        });
    gradient(
        "leaky_relu_backward",
        "self",
        call -> {
          double slope = call.number("negative_slope");
          return (grad, x) -> x > 0 ? grad : grad * slope;
        });
    gradient(
        "softplus_backward",
        "self",
        call -> {
          double beta = call.number("beta");
          double threshold = call.number("threshold");
          return (grad, x) ->
              x * beta > threshold ? grad : grad * SpecialFunctions.sigmoid(x * beta);
        });
    gradient(
        "logit_backward",
        "self",
        call -> {
          double eps = call.has("eps") ? call.number("eps") : -1;
          return (grad, x) ->
              eps < 0
                  ? x < 0 || x > 1 ? Double.NaN : grad / (x * (1 - x))
                  : x < eps || x > 1 - eps ? 0 : grad / (x * (1 - x));
        });
    gradient("elu_backward", "self_or_result", ActivationKernels::eluGradient);
  }

  private static DoubleBinaryOperator eluGradient(HostCall call) {
    double scale = call.number("scale");
    double alpha = call.number("alpha") * scale;
    double input = call.number("input_scale");
    if (call.bool("is_result")) {
      return (grad, y) -> y <= 0 ? grad * input * (y + alpha) : grad * scale;
    }
    return (grad, x) -> x <= 0 ? grad * input * alpha * Math.exp(x * input) : grad * scale;
  }

  private void combinations() {
    table.put(
        "aten::addcmul", call -> combine(call, (a, b, value) -> value * a * b, (a, b) -> a * b));
    table.put(
        "aten::addcdiv", call -> combine(call, (a, b, value) -> value * (a / b), (a, b) -> a / b));
    for (var overload : List.of("Scalar", "Tensor")) {
      table.put(
          "aten::lerp." + overload,
          call ->
              Pointwise.runDoubles(
                  call,
                  Pointwise.ternary(
                      (from, to, weight) ->
                          Math.abs(weight) < 0.5
                              ? from + weight * (to - from)
                              : to - (to - from) * (1 - weight)),
                  "self",
                  "end",
                  "weight"));
    }
    table.put(
        "prims::fma",
        call ->
            Pointwise.runDoubles(call, Pointwise.ternary((a, b, c) -> a * b + c), "a", "b", "c"));
    table.put(
        "aten::native_dropout_backward",
        call -> {
          double scale = call.number("scale");
          Pointwise.runDoubles(
              call,
              Pointwise.binary((grad, mask) -> mask != 0 ? grad * scale : 0),
              "grad_output",
              "mask");
        });
  }

  private interface LongCombination {
    long apply(long a, long b);
  }

  /** {@code self + value · f(tensor1, tensor2)} */
  private static void combine(HostCall call, Ternary f, LongCombination g) {
    double value = call.number("value");
    long whole = (long) value;
    Pointwise.run(
        call,
        Pointwise.ternary((self, a, b) -> self + f.apply(a, b, value)),
        (in, out, n) -> {
          for (int i = 0; i < n; i++) {
            out[i] = in[0][i] + whole * g.apply(in[1][i], in[2][i]);
          }
        },
        "self",
        "tensor1",
        "tensor2");
  }

  private void unary(String name, DoubleUnaryOperator f) {
    table.put("aten::" + name, call -> run(call, f));
  }

  private static void run(HostCall call, DoubleUnaryOperator f) {
    Pointwise.runDoubles(call, Pointwise.unary(f), "self");
  }

  private void gradient(String name, String operand, Gradient gradient) {
    table.put(
        "aten::" + name,
        call ->
            Pointwise.runDoubles(
                call, Pointwise.binary(gradient.of(call)), "grad_output", operand));
  }
}
