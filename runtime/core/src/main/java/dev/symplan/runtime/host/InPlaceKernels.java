package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.aten.Form;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Optional;

/**
 * The forms of ops that write their result over {@code self}: the op itself, computed in the type
 * that it has elsewhere, and copied.
 */
final class InPlaceKernels {
  private InPlaceKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var registry = BuiltinOps.registry();
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var name : registry.names()) {
      var def = registry.get(name.toString());
      // The others have implementations of their own.
      if (!name.name().equals("copy_") && !name.name().equals("index_put_")) {
        Form.functional(def).ifPresent(form -> table.put(name.toString(), call -> run(call, form)));
      }
    }
    table.put("aten::zero_", call -> CreationKernels.fill(call.tensor("self"), 0));
    return table.buildOrThrow();
  }

  private static void run(HostCall call, Form form) {
    var args = form.args(call.args(), Value.Constant::new);
    var types = args.stream().map(HostCallTypes::arg).collect(ImmutableList.toImmutableList());
    var type = (TensorType) form.def().infer(types).orElseThrow().getFirst().type();
    var result = HostTensor.allocate(type);
    HostKernels.find(form.def().name())
        .orElseThrow()
        .run(
            new HostCall(
                form.def().schema(),
                call.name(),
                args,
                ImmutableList.of(Optional.of(result)),
                Optional.empty()));
    call.tensor("self").copyFrom(result);
  }
}
