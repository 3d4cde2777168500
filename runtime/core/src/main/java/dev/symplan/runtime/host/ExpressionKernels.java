package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.expr.Expressions;
import java.util.List;

/** The ops that expressions define, and {@code fill}. */
final class ExpressionKernels {
  private ExpressionKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var name : Expressions.names()) {
      var exprs = Expressions.get(name);
      table.put(
          name,
          Expressions.isByRow(name)
              ? new RowsKernel(exprs)
              : new ElementwiseKernel(exprs.getFirst()));
    }
    for (var overload : List.of("Scalar", "Tensor")) {
      table.put("aten::fill." + overload, call -> CreationKernels.fill(call, "value"));
    }
    return table.buildOrThrow();
  }
}
