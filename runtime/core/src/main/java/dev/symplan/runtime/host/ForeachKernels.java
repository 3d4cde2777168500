package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.aten.ForeachOps;
import dev.symplan.ir.aten.Form;
import dev.symplan.runtime.host.HostCall.Value;
import java.util.Optional;

/** Ops that do the same to each tensor of a list. */
final class ForeachKernels {
  private ForeachKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var name : BuiltinOps.registry().names()) {
      if (name.name().startsWith("_foreach_")) {
        ForeachOps.element(BuiltinOps.registry().get(name.toString()))
            .ifPresent(element -> table.put(name.toString(), call -> run(call, element)));
      }
    }
    return table.buildOrThrow();
  }

  private static void run(HostCall call, Form element) {
    var kernel = HostKernels.find(element.def().name()).orElseThrow();
    for (int i = 0; i < call.resultCount(); i++) {
      if (call.hasResult(i)) {
        int index = i;
        var given = ForeachOps.item(call.schema(), call.args(), list -> item(list, index));
        kernel.run(
            new HostCall(
                element.def().schema(),
                call.name(),
                element.args(given, Value.Constant::new),
                ImmutableList.of(Optional.of(call.result(i))),
                Optional.empty()));
      }
    }
  }

  private static Value item(Value list, int index) {
    return switch (list) {
      case Value.Many(ImmutableList<Value> items) -> items.get(index);
      case Value.Constant(Arg.Seq(ImmutableList<Arg> items)) ->
          new Value.Constant(items.get(index));
      case Value.Constant _, Value.Tensor _ -> list;
    };
  }
}
