package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.List;

/**
 * Steps of optimizers: Adam (Kingma, Ba 2015), AdamW (Loshchilov, Hutter 2019) and SGD, as PyTorch
 * fuses them. Computed in f64 throughout; each result is rounded once.
 */
final class OptimizerKernels {
  private OptimizerKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var overload : List.of("", ".tensor_lr")) {
      table.put("aten::_fused_adam" + overload, call -> new Step(call).adam(false));
      table.put("aten::_fused_adamw" + overload, call -> new Step(call).adam(true));
      table.put("aten::_fused_sgd" + overload, call -> new Step(call).sgd());
    }
    return table.buildOrThrow();
  }

  /** One call; the results are the lists behind each other. */
  private static final class Step {
    private final HostCall call;
    private final double rate;
    private final double decay;
    private final double gradSign;
    private final boolean skips;
    private int next;

    Step(HostCall call) {
      this.call = call;
      rate =
          call.value("lr") instanceof Value.Tensor(HostTensor tensor)
              ? tensor.get()
              : call.number("lr");
      decay = call.number("weight_decay");
      gradSign = call.bool("maximize") ? -1 : 1;
      skips = call.optionalTensor("found_inf").map(found -> found.get() != 0).orElse(false);
    }

    private ImmutableList<HostTensor> list(String param) {
      return call.value(param) instanceof Value.Many ? call.tensors(param) : ImmutableList.of();
    }

    /** {@return the tensors in f64; the originals stay as they are} */
    private List<HostTensor> wide(String param) {
      var wide = new ArrayList<HostTensor>();
      for (var tensor : list(param)) {
        var copy = tensor.copyAs(tensor.type().contiguous().withDType(DType.F64));
        wide.add(copy);
      }
      return wide;
    }

    private static List<HostTensor> copies(List<HostTensor> tensors) {
      var copies = new ArrayList<HostTensor>();
      for (var tensor : tensors) {
        var copy = tensor.copyAs(tensor.type());
        copies.add(copy);
      }
      return copies;
    }

    private void store(List<HostTensor> tensors) {
      for (var tensor : tensors) {
        if (call.hasResult(next)) {
          call.result(next).copyFrom(tensor);
        }
        next++;
      }
    }

    private List<HostTensor> unscaled() {
      var grads = wide("grads");
      if (!skips && call.has("grad_scale")) {
        double scale = call.tensor("grad_scale").get();
        grads.forEach(grad -> update(grad, (g, _, _) -> g / scale, grad, grad));
      }
      return grads;
    }

    private static void update(HostTensor target, Pointwise.Ternary f, HostTensor a, HostTensor b) {
      Pointwise.apply(target, Pointwise.ternary(f), target, a, b);
    }

    void adam(boolean decoupled) {
      var params = wide("self");
      var grads = unscaled();
      var averages = wide("exp_avgs");
      var squares = wide("exp_avg_sqs");
      var largest = wide("max_exp_avg_sqs");
      var stored = copies(grads);
      for (int i = 0; i < params.size() && !skips; i++) {
        adam(i, decoupled, params.get(i), grads.get(i), averages.get(i), squares.get(i), largest);
      }
      store(params);
      store(stored);
      store(averages);
      store(squares);
      store(largest);
    }

    private void adam(
        int index,
        boolean decoupled,
        HostTensor param,
        HostTensor grad,
        HostTensor average,
        HostTensor square,
        List<HostTensor> largest) {
      double beta1 = call.number("beta1");
      double beta2 = call.number("beta2");
      double eps = call.number("eps");
      double step = list("state_steps").get(index).get();
      double rest1 = 1 - Math.pow(beta1, step);
      double rest2 = Math.sqrt(1 - Math.pow(beta2, step));
      double added = decoupled ? 0 : decay;
      double kept = decoupled ? 1 - rate * decay : 1;
      update(grad, (g, p, _) -> gradSign * g + added * p, param, param);
      update(average, (m, g, _) -> m + (1 - beta1) * (g - m), grad, grad);
      update(square, (v, g, _) -> v + (1 - beta2) * (g * g - v), grad, grad);
      var bound = square;
      if (call.bool("amsgrad")) {
        bound = largest.get(index);
        update(bound, (max, v, _) -> Math.max(max, v), square, square);
      }
      update(
          param,
          (p, m, v) -> kept * p - rate / rest1 * m / (Math.sqrt(v) / rest2 + eps),
          average,
          bound);
    }

    void sgd() {
      var params = wide("self");
      var grads = unscaled();
      var buffers = wide("momentum_buffer_list");
      var stored = copies(grads);
      double momentum = call.number("momentum");
      double fresh = call.bool("is_first_step") ? 1 : 1 - call.number("dampening");
      double old = call.bool("is_first_step") ? 0 : momentum;
      boolean nesterov = call.bool("nesterov");
      for (int i = 0; i < params.size() && !skips; i++) {
        var grad = grads.get(i);
        update(grad, (g, p, _) -> gradSign * g + decay * p, params.get(i), params.get(i));
        if (momentum != 0) {
          var buffer = buffers.get(i);
          update(buffer, (b, g, _) -> (old == 0 ? 0 : old * b) + fresh * g, grad, grad);
          update(grad, (g, b, _) -> nesterov ? g + momentum * b : b, buffer, buffer);
        }
        update(params.get(i), (p, g, _) -> p - rate * g, grad, grad);
      }
      store(params);
      store(stored);
      store(buffers);
    }
  }
}
