package dev.symplan.ir.fx;

import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Lower bounds for the number of statements of graphs whose subgraphs are inlined. They are counted
 * without inlining, since a few lines of subgraphs that call subgraphs can stand for any number of
 * statements.
 */
final class InlinedSizes {
  private static final String ATEN = "torch.ops.aten.";

  private final Map<FxFunction, Long> sizes = new IdentityHashMap<>();

  /** {@return a lower bound, which is {@link Integer#MAX_VALUE} at most} */
  long atLeast(FxFunction function) {
    @Nullable Long known = sizes.get(function);
    if (known == null) {
      known = Math.min(counted(function), Integer.MAX_VALUE);
      sizes.put(function, known);
    }
    return known;
  }

  private long counted(FxFunction function) {
    var subgraphs = new HashMap<String, FxFunction>();
    long size = 0;
    for (var statement : function.statements()) {
      switch (statement.value()) {
        case FxExpr.Name(String name) when name.startsWith(HigherOrder.SELF) -> {
          var attribute = name.substring(HigherOrder.SELF.length());
          @Nullable FxFunction subgraph = function.subgraphs().get(attribute);
          if (subgraph != null) {
            subgraphs.put(statement.name(), subgraph);
          }
        }
        case FxExpr.Call call -> {
          if (call.target().startsWith(ATEN)) {
            size++;
          }
          @Nullable Integer at =
              HigherOrder.CALLS.get(call.target().replace(HigherOrder.PREFIX, ""));
          if (at != null
              && at < call.args().size()
              && call.args().get(at) instanceof FxExpr.Name(String name)
              && subgraphs.containsKey(name)) {
            size += atLeast(subgraphs.get(name));
          }
        }
        default -> {}
      }
    }
    return size;
  }
}
