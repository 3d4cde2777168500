package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.fx.FxFunction.Statement;
import java.util.LinkedHashMap;
import java.util.Optional;

/** Takes calls of the user's own kernels apart, which may write each tensor that they are given. */
final class TritonKernels {
  private TritonKernels() {}

  /** {@return whether the statement was taken apart; if not, nothing is added} */
  static boolean takeApart(StatementWriter writer, Statement statement, FxExpr.Call call) {
    if (!(call.keyword("kwargs") instanceof FxExpr.Dict(var keys, var values))) {
      return false;
    }
    var copied =
        call.keyword("tensors_to_clone") instanceof FxExpr.Seq(var list)
            ? list
            : ImmutableList.<FxExpr>of();
    var keywords = new LinkedHashMap<String, FxExpr>();
    call.keywords()
        .forEach(
            (key, value) -> {
              if (!key.equals("tensors_to_clone") && !(value instanceof FxExpr.Dict)) {
                keywords.put(key, value);
              }
            });
    var results = ImmutableMap.<FxExpr, FxExpr>builder();
    for (int i = 0; i < keys.size(); i++) {
      if (keys.get(i) instanceof FxExpr.Str(String key)) {
        var value = values.get(i);
        if (copied.contains(keys.get(i))) {
          value = writer.copied(statement, value, keys.get(i), key);
          results.put(keys.get(i), value);
        }
        keywords.put(keywords.containsKey(key) ? key + "_" : key, value);
      }
    }
    writer.emit(
        statement,
        statement.name(),
        Optional.empty(),
        new FxExpr.Call(
            HigherOrder.PREFIX + "triton_kernel_wrapper_mutation",
            ImmutableList.of(),
            ImmutableMap.copyOf(keywords),
            call.span()));
    writer.renaming().takeApart(statement.name(), results.buildOrThrow());
    return true;
  }
}
