package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.stream.Stream;

/** Whole steps of optimizers: the functional forms of PyTorch's fused ones. */
final class OptimizerOps {
  private static final List<String> ADAM =
      List.of("self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs");

  private static final List<String> SGD = List.of("self", "grads", "momentum_buffer_list");

  private OptimizerOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
            adam("_fused_adam", "float"),
            adam("_fused_adam.tensor_lr", "Tensor"),
            adam("_fused_adamw", "float"),
            adam("_fused_adamw.tensor_lr", "Tensor"),
            sgd("_fused_sgd", "float"),
            sgd("_fused_sgd.tensor_lr", "Tensor"))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> adam(String name, String rate) {
    return Table.ops(
        "aten::%s(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] max_exp_avg_sqs, Tensor[] state_steps, *, %s lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> (Tensor[] self_out, Tensor[] grads_out, Tensor[] exp_avgs_out, Tensor[] exp_avg_sqs_out, Tensor[] max_exp_avg_sqs_out)"
            .formatted(name, rate),
        call -> {
          checkLength(call, "state_steps");
          call.values("state_steps").forEach(step -> checkNumber("state_steps", step.tensor()));
          return updated(call, ADAM, call.bool("amsgrad") ? "" : "max_exp_avg_sqs");
        });
  }

  private static Stream<OpSpec> sgd(String name, String rate) {
    return Table.ops(
        "aten::%s(Tensor[] self, Tensor[] grads, Tensor[] momentum_buffer_list, *, float weight_decay, float momentum, %s lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> (Tensor[] self_out, Tensor[] grads_out, Tensor[] momentum_buffer_list_out)"
            .formatted(name, rate),
        call -> updated(call, SGD, call.number("momentum") == 0 ? "momentum_buffer_list" : ""));
  }

  private static void checkLength(OpCall call, String param) {
    int count = call.values("self").size();
    int own = call.values(param).size();
    if (own != count) {
      throw new OpTypeException(
          "'%s' has %s, but there are %s tensors"
              .formatted(param, Units.count(own, "item"), count));
    }
  }

  /**
   * {@return the lists anew}
   *
   * @param unused a list that may be empty
   */
  private static List<OpResult> updated(OpCall call, List<String> lists, String unused) {
    for (var name : List.of("lr", "grad_scale", "found_inf")) {
      if (call.arg(name) instanceof Arg.Ref(Value value) && value.isTensor()) {
        checkNumber(name, value.tensor());
      } else if (name.equals("lr")) {
        call.number(name);
      }
    }
    if (call.values("self").isEmpty()) {
      throw new OpTypeException("the list of tensors is empty");
    }
    var results = ImmutableList.<OpResult>builder();
    for (var list : lists) {
      var tensors = call.values(list);
      if (!(tensors.isEmpty() && list.equals(unused))) {
        checkLength(call, list);
      }
      for (int i = 0; i < tensors.size(); i++) {
        checkShape(list, tensors.get(i), call.values("self").get(i));
        results.add(OpResult.fresh(Layouts.preserved(tensors.get(i).tensor())));
      }
    }
    return results.build();
  }

  private static void checkNumber(String name, TensorType type) {
    if (type.numel() != 1) {
      throw new OpTypeException("'%s' must be one number, not %s".formatted(name, type));
    }
  }

  private static void checkShape(String list, Value tensor, Value self) {
    if (!tensor.tensor().dtype().isFloat()) {
      throw new OpTypeException("works on floats, not on " + tensor.tensor().dtype().shortName());
    }
    if (!tensor.tensor().sizes().equals(self.tensor().sizes())) {
      throw new OpTypeException(
          "'%s' of %s has the shape %s, but '%s' has %s"
              .formatted(
                  tensor.name(),
                  list,
                  Shapes.text(tensor.tensor().sizes()),
                  self.name(),
                  Shapes.text(self.tensor().sizes())));
    }
  }
}
