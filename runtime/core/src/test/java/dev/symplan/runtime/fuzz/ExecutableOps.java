package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.runtime.host.HostKernels;

/** The ops that random programs are made of. */
final class ExecutableOps {
  private ExecutableOps() {}

  /** {@return the ops that have all it takes to be run here} */
  static ImmutableList<OpDef> all() {
    var registry = BuiltinOps.registry();
    return registry.names().stream()
        .map(name -> registry.find(name).orElseThrow())
        .filter(ExecutableOps::isExecutable)
        .collect(ImmutableList.toImmutableList());
  }

  static Generator generator() {
    return new Generator(
        all().stream()
            .filter(op -> op.collective().isEmpty())
            .filter(op -> !op.name().namespace().startsWith("_c10d"))
            .collect(ImmutableList.toImmutableList()));
  }

  private static boolean isExecutable(OpDef def) {
    return def.rule().isPresent()
        // Cuts put it in, where it fits the inputs and outputs.
        && !def.has(OpTrait.BORDER)
        // Plans have them, where memory is short.
        && !def.has(OpTrait.HOST_COPY)
        && !def.has(OpTrait.HOST_COPY_END)
        // Modules with loops that it stands for do not run: hlo::while_condition is in them.
        && !def.name().toString().equals("hlo::while")
        // Plans have functional collectives in their place.
        && def.collective().flatMap(CollectiveSpec::foreign).isEmpty()
        && def.collective().filter(spec -> spec.kind() == Kind.CUSTOM).isEmpty()
        && (def.collective().isPresent()
            || HostKernels.find(def.name()).isPresent()
            || isView(def));
  }

  private static boolean isView(OpDef def) {
    return !def.schema().mutates()
        && def.schema().params().stream().anyMatch(p -> !p.alias().toString().isEmpty());
  }
}
