package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.expr.Expressions;
import java.util.List;

/** The elementwise ops that expressions define, and {@code fill}. */
final class ElementwiseKernels {
  private ElementwiseKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var name : Expressions.names()) {
      if (!Expressions.isByRow(name)) {
        table.put(name, new ElementwiseKernel(Expressions.get(name).getFirst()));
      }
    }
    for (var overload : List.of("Scalar", "Tensor")) {
      table.put("aten::fill." + overload, call -> CreationKernels.fill(call, "value"));
    }
    return table.buildOrThrow();
  }
}
