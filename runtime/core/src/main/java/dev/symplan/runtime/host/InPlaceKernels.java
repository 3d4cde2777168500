package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpName;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Optional;

/**
 * The forms of ops that write their result over {@code self}: the op itself, computed in the type
 * that it has elsewhere, and copied.
 */
final class InPlaceKernels {
  private static final String SUFFIX = "_";

  private InPlaceKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var registry = BuiltinOps.registry();
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var name : registry.names()) {
      var def = registry.get(name.toString());
      // The others have implementations of their own.
      if (name.name().endsWith(SUFFIX)
          && def.collective().isEmpty()
          && def.schema().mutates()
          && !name.name().equals("copy_")
          && !name.name().equals("index_put_")) {
        registry
            .find(functional(name))
            .ifPresent(form -> table.put(name.toString(), call -> run(call, form)));
      }
    }
    table.put("aten::zero_", call -> CreationKernels.fill(call.tensor("self"), 0));
    return table.buildOrThrow();
  }

  private static OpName functional(OpName name) {
    var base = name.name().substring(0, name.name().length() - SUFFIX.length());
    return new OpName(name.namespace(), base, name.overload());
  }

  private static void run(HostCall call, OpDef form) {
    var args = ImmutableList.<Value>builder();
    var types = ImmutableList.<Arg>builder();
    for (var param : form.schema().params()) {
      var value =
          call.hasParam(param.name())
              ? call.value(param.name())
              : new Value.Constant(param.defaultValue().orElse(Arg.None.NONE));
      args.add(value);
      types.add(HostCallTypes.arg(value));
    }
    var type = (TensorType) form.infer(types.build()).orElseThrow().getFirst().type();
    var result = HostTensor.allocate(type);
    HostKernels.find(form.name())
        .orElseThrow()
        .run(
            new HostCall(
                form.schema(),
                call.name(),
                args.build(),
                ImmutableList.of(Optional.of(result)),
                Optional.empty()));
    call.tensor("self").copyFrom(result);
  }
}
