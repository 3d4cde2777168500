package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.Convolution.Pass;
import dev.symplan.codegen.cuda.PositionOps.Rule;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.planner.machine.LibraryConvolution;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Convolutions and their gradients. All are of two images: a large one, over which windows slide,
 * and a small one with an element for each window. A transposed convolution is the gradient of the
 * other. What cuDNN may have no kernel for is computed each element by itself.
 */
final class ConvolutionOps {
  static final ImmutableMap<String, Rule> TABLE =
      ImmutableMap.of(
          "aten::convolution", ConvolutionOps::forward,
          "aten::convolution_backward", ConvolutionOps::backward);

  private final PositionOps op;

  /** Operands that cuDNN does not know, and what it reads instead. */
  private final Map<TensorRef, TensorRef> copies = new HashMap<>();

  private final int dims;
  private final ImmutableLongArray window;
  private final SlidingWindows windows;

  /** Channels of a group of the small image, and of the large one. */
  private final long outer;

  private final long inner;

  private ConvolutionOps(PositionOps op, TensorRef weight, SlidingWindows windows) {
    this.op = op;
    this.dims = windows.dims();
    this.window = weight.type().sizes().subArray(2, dims + 2);
    this.windows = windows;
    this.outer = Math.max(1, weight.type().size(0) / op.arguments.integer("groups"));
    this.inner = Math.max(1, weight.type().size(1));
  }

  private static ConvolutionOps of(PositionOps op, TensorRef weight) {
    int dims = weight.type().rank() - 2;
    return new ConvolutionOps(
        op,
        weight,
        new SlidingWindows(
            each(op, "stride", dims), each(op, "padding", dims), each(op, "dilation", dims)));
  }

  private static ImmutableLongArray each(PositionOps op, String param, int dims) {
    var list = op.arguments.integers(param);
    return ImmutableLongArray.copyOf(
        IntStream.range(0, dims).mapToLong(dim -> list.get(list.length() == 1 ? 0 : dim)));
  }

  private static void forward(PositionOps op) {
    var weight = op.arguments.tensor("weight");
    var input = op.arguments.tensor("input");
    var bias = op.arguments.optionalTensor("bias");
    var result = op.arguments.result();
    var convolution = of(op, weight);
    if (op.arguments.flag("transposed")) {
      convolution.add(Pass.BACKWARD_DATA, result, weight, input, bias);
    } else {
      convolution.add(Pass.FORWARD, input, weight, result, bias);
    }
  }

  private static void backward(PositionOps op) {
    var weight = op.arguments.tensor("weight");
    var input = op.arguments.tensor("input");
    var grad = op.arguments.tensor("grad_output");
    var convolution = of(op, weight);
    boolean transposed = op.arguments.flag("transposed");
    op.arguments
        .result(0)
        .ifPresent(
            result -> {
              if (transposed) {
                convolution.add(Pass.FORWARD, grad, weight, result, Optional.empty());
              } else {
                convolution.add(Pass.BACKWARD_DATA, result, weight, grad, Optional.empty());
              }
            });
    op.arguments
        .result(1)
        .ifPresent(
            result ->
                convolution.add(
                    Pass.BACKWARD_FILTER,
                    transposed ? grad : input,
                    result,
                    transposed ? input : grad,
                    Optional.empty()));
    op.arguments.result(2).ifPresent(result -> ofBias(op, grad, result));
  }

  private void add(
      Pass pass, TensorRef large, TensorRef weight, TensorRef small, Optional<TensorRef> bias) {
    if (!ConvolutionForm.suits(large, weight, small, windows)) {
      generated(pass, large, weight, small, bias).forEach(op::add);
      return;
    }
    if (pass == Pass.BACKWARD_DATA && windows.areApart(window) && isWide(large)) {
      spread(large, weight, small);
      bias.ifPresent(own -> addBias(large, own));
      return;
    }
    var knownLarge = known(large, pass != Pass.BACKWARD_DATA);
    var knownWeight = known(weight, pass != Pass.BACKWARD_FILTER);
    var knownSmall = known(small, pass != Pass.FORWARD);
    op.add(
        ConvolutionForm.of(knownLarge, knownWeight, knownSmall, windows)
            .step(
                op.arguments,
                pass,
                generated(pass, knownLarge, knownWeight, knownSmall, Optional.empty())));
    switch (pass) {
      case FORWARD -> deliver(knownSmall, small, bias);
      case BACKWARD_DATA -> deliver(knownLarge, large, bias);
      case BACKWARD_FILTER -> deliver(knownWeight, weight, bias);
    }
  }

  private static boolean isWide(TensorRef ref) {
    var dtype = ref.type().dtype();
    return dtype == DType.F32 || dtype == DType.F64;
  }

  /**
   * Computes the elements that windows of one element meet, for which cuDNN's kernels of f32 take
   * many times as long if others lie between.
   */
  private void spread(TensorRef large, TensorRef weight, TensorRef small) {
    var met = large;
    for (int dim = 0; dim < dims; dim++) {
      met = Moves.narrow(met, dim + 2, 0, small.type().size(dim + 2), windows.stride().get(dim));
    }
    op.fill(large, 0);
    new ConvolutionOps(op, weight, windows.withoutStride())
        .add(Pass.BACKWARD_DATA, met, weight, small, Optional.empty());
  }

  private void deliver(TensorRef made, TensorRef result, Optional<TensorRef> bias) {
    op.copy(made, result);
    bias.ifPresent(own -> addBias(result, own));
  }

  /** {@return the tensor, or one beside the arenas that cuDNN knows instead} */
  private TensorRef known(TensorRef ref, boolean isRead) {
    if (ConvolutionForm.isKnown(ref)) {
      return ref;
    }
    if (!isRead) {
      return op.scratch.take(LibraryConvolution.dense(ref.type()));
    }
    return copies.computeIfAbsent(
        ref,
        from -> {
          var to = op.scratch.take(LibraryConvolution.dense(from.type()));
          op.copy(from, to);
          return to;
        });
  }

  /** {@return the steps that compute each element by itself} */
  private ImmutableList<DeviceStep> generated(
      Pass pass, TensorRef large, TensorRef weight, TensorRef small, Optional<TensorRef> bias) {
    List.of(large, weight, small).forEach(op.arguments::checkComputes);
    bias.ifPresent(op.arguments::checkComputes);
    return PositionOps.lower(
        op.rank,
        op.arguments,
        own -> {
          var generated = new ConvolutionOps(own, weight, windows);
          switch (pass) {
            case FORWARD -> generated.convolve(large, weight, small, bias);
            case BACKWARD_DATA -> generated.transpose(small, weight, large, bias);
            case BACKWARD_FILTER -> generated.ofWeights(large, small, weight);
          }
        });
  }

  /** Adds a number to each channel. */
  private void addBias(TensorRef result, TensorRef bias) {
    var sizes = result.type().sizes();
    var strides = new long[sizes.length()];
    strides[1] = bias.type().stride(0);
    op.call(
        "aten::add.Tensor",
        List.of(
            new Operand.Tensor(result),
            new Operand.Tensor(Moves.strided(bias, 0, sizes, ImmutableLongArray.copyOf(strides))),
            new Operand.Constant(new Arg.Int(1))),
        result);
  }

  private static void ofBias(PositionOps op, TensorRef grad, TensorRef result) {
    var others = ImmutableList.<Arg>builder();
    IntStream.range(0, grad.type().rank())
        .filter(dim -> dim != 1)
        .forEach(dim -> others.add(new Arg.Int(dim)));
    op.call(
        "aten::sum.dim_IntList",
        List.of(
            new Operand.Tensor(grad),
            new Operand.Constant(new Arg.Seq(others.build())),
            new Operand.Constant(new Arg.Bool(false)),
            new Operand.Constant(Arg.None.NONE)),
        result);
  }

  private static String type(TensorRef ref) {
    return CTypes.computed(ref.type().dtype());
  }

  private List<String> numbered(String prefix) {
    return IntStream.range(0, dims).mapToObj(dim -> prefix + dim).toList();
  }

  private static List<String> at(String item, String channel, List<String> place) {
    var all = new ArrayList<>(List.of(item, channel));
    all.addAll(place);
    return all;
  }

  private void loop(PositionKernel kernel, String name, long count) {
    kernel.line("for (long long %1$s = 0; %1$s < %2$s; %1$s++) {".formatted(name, count));
  }

  /** An element of the small image: the sum of its window in the channels of its group. */
  private void convolve(
      TensorRef large, TensorRef weight, TensorRef small, Optional<TensorRef> bias) {
    var kernel = op.kernel(small.type().sizes());
    kernel.line("%s sum = 0;".formatted(type(small)));
    kernel.line("const long long group = i1 / %s;".formatted(outer));
    loop(kernel, "c", inner);
    for (int dim = 0; dim < dims; dim++) {
      loop(kernel, "k" + dim, window.get(dim));
      kernel.line(
          "const long long p%1$s = i%2$s * %3$s + k%1$s * %4$s - %5$s;"
              .formatted(
                  dim,
                  dim + 2,
                  windows.stride().get(dim),
                  windows.dilation().get(dim),
                  windows.padding().get(dim)));
      kernel.line(
          "if (p%1$s < 0 || p%1$s >= %2$s) {\n  continue;\n}"
              .formatted(dim, large.type().size(dim + 2)));
    }
    kernel.line(
        "sum += %s * %s;"
            .formatted(
                kernel.value(large, at("i0", "(group * %s + c)".formatted(inner), numbered("p"))),
                kernel.value(weight, at("i1", "c", numbered("k")))));
    finish(kernel, dims + 1, small, bias);
  }

  /** An element of the large image: the sum over the windows that it is in. */
  private void transpose(
      TensorRef small, TensorRef weight, TensorRef large, Optional<TensorRef> bias) {
    var kernel = op.kernel(large.type().sizes());
    kernel.line("%s sum = 0;".formatted(type(large)));
    kernel.line("const long long group = i1 / %1$s, c = i1 %% %1$s;".formatted(inner));
    loop(kernel, "s", outer);
    for (int dim = 0; dim < dims; dim++) {
      loop(kernel, "k" + dim, window.get(dim));
      kernel.line(
          "const long long t%1$s = i%2$s + %3$s - k%1$s * %4$s, p%1$s = t%1$s / %5$s;"
              .formatted(
                  dim,
                  dim + 2,
                  windows.padding().get(dim),
                  windows.dilation().get(dim),
                  windows.stride().get(dim)));
      kernel.line(
          "if (t%1$s < 0 || t%1$s %% %2$s != 0 || p%1$s >= %3$s) {\n  continue;\n}"
              .formatted(dim, windows.stride().get(dim), small.type().size(dim + 2)));
    }
    var channel = "(group * %s + s)".formatted(outer);
    kernel.line(
        "sum += %s * %s;"
            .formatted(
                kernel.value(small, at("i0", channel, numbered("p"))),
                kernel.value(weight, at(channel, "c", numbered("k")))));
    finish(kernel, dims + 1, large, bias);
  }

  /** A weight's gradient is a sum over all windows, of so many terms that it is kept in f64. */
  private void ofWeights(TensorRef large, TensorRef small, TensorRef result) {
    var kernel = op.kernel(result.type().sizes());
    kernel.line("double sum = 0;");
    kernel.line("const long long group = i0 / %s;".formatted(outer));
    loop(kernel, "n", large.type().size(0));
    for (int dim = 0; dim < dims; dim++) {
      loop(kernel, "w" + dim, small.type().size(dim + 2));
      kernel.line(
          "const long long p%1$s = w%1$s * %2$s + i%3$s * %4$s - %5$s;"
              .formatted(
                  dim,
                  windows.stride().get(dim),
                  dim + 2,
                  windows.dilation().get(dim),
                  windows.padding().get(dim)));
      kernel.line(
          "if (p%1$s < 0 || p%1$s >= %2$s) {\n  continue;\n}"
              .formatted(dim, large.type().size(dim + 2)));
    }
    kernel.line(
        "sum += (double)%s * (double)%s;"
            .formatted(
                kernel.value(small, at("n", "i0", numbered("w"))),
                kernel.value(large, at("n", "(group * %s + i1)".formatted(inner), numbered("p")))));
    finish(kernel, dims + 1, result, Optional.empty());
  }

  private void finish(
      PositionKernel kernel, int loops, TensorRef result, Optional<TensorRef> bias) {
    kernel.line("}".repeat(loops));
    kernel.set(
        result,
        kernel.indices(),
        "(%s)sum".formatted(type(result))
            + bias.map(own -> " + " + kernel.value(own, List.of("i1"))).orElse(""));
    op.launch(kernel, result.type().sizes());
  }
}
