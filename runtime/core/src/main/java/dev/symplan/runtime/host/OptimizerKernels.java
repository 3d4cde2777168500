package dev.symplan.runtime.host;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Optional;

/**
 * Steps of optimizers: Adam (Kingma, Ba 2015), AdamW (Loshchilov, Hutter 2019) and SGD, as PyTorch
 * fuses them. Computed in f64 throughout; each result is rounded once.
 */
final class OptimizerKernels {
  private static final String ADAM =
      "adam_step(self, decayed()); unscaled(); average(decayed()); square(decayed());"
          + " bound(decayed())";

  private static final String ADAMW =
      "adam_step(self * (1 - lr * weight_decay), signed()); unscaled(); average(signed());"
          + " square(signed()); bound(signed())";

  private static final String SGD =
      "self - lr * descent(decayed()); unscaled(); velocity(decayed())";

  private OptimizerKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var overload : List.of("", ".tensor_lr")) {
      table.put("aten::_fused_adam" + overload, call -> step(call, ADAM));
      table.put("aten::_fused_adamw" + overload, call -> step(call, ADAMW));
      table.put("aten::_fused_sgd" + overload, call -> step(call, SGD));
    }
    return table.buildOrThrow();
  }

  /** The results are the first lists, with what the expressions give, behind each other. */
  private static void step(HostCall call, String exprs) {
    int count = call.tensors("self").size();
    for (int i = 0; i < count; i++) {
      step(call, Splitter.on(';').splitToList(exprs), i);
    }
  }

  private static void step(HostCall call, List<String> exprs, int item) {
    var operands = new HashMap<String, HostTensor>();
    var numbers = new HashMap<String, Arg>();
    var wanted = new ArrayList<String>();
    var results = new ArrayList<HostTensor>();
    int next = item;
    for (int i = 0; i < call.schema().params().size(); i++) {
      var param = call.schema().params().get(i).name();
      switch (call.value(param)) {
        case Value.Many _ when param.equals("state_steps") ->
            numbers.put(param, number(call.tensors(param).get(item)));
        case Value.Many _ -> {
          var list = call.tensors(param);
          operands.put(param, list.get(item));
          if (call.hasResult(next)) {
            wanted.add(found(call) ? param : exprs.get(i));
            results.add(call.result(next));
          }
          next += list.size();
        }
        case Value.Tensor(var tensor) -> numbers.put(param, number(tensor));
        case Value.Constant(var arg) -> numbers.put(param, arg);
      }
    }
    if (wanted.isEmpty()) {
      return;
    }
    var self = call.tensors("self").get(item).type();
    var row = new boolean[self.rank()];
    Arrays.fill(row, true);
    RowsKernel.compute(
        param -> Optional.ofNullable(numbers.get(param)),
        String.join(";", wanted),
        operands,
        self,
        row,
        results.toArray(HostTensor[]::new));
  }

  private static Arg number(HostTensor tensor) {
    return new Arg.Float(tensor.get());
  }

  /** Whether gradients overflowed, so that nothing is changed. */
  private static boolean found(HostCall call) {
    return call.optionalTensor("found_inf").map(found -> found.get() != 0).orElse(false);
  }
}
