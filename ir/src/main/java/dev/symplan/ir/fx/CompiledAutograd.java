package dev.symplan.ir.fx;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.fx.FxFunction.Param;
import dev.symplan.ir.fx.FxFunction.Statement;
import java.util.List;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Graphs of compiled autograd take lists: what is taken out of them are the real arguments. */
final class CompiledAutograd {
  /** No graph takes so many. */
  private static final long MAX_ARGUMENTS = 1 << 16;

  /** How to get a graph without calls of Python. */
  static final String HINT =
      "Dynamo traces through such functions and compiles the result: " + FxText.POST_GRAD_HINT;

  private CompiledAutograd() {}

  /**
   * {@return the arguments of a graph, of compiled autograd or not}
   *
   * @param writer of the graph; what is taken out of the lists gets its name there
   */
  static ImmutableList<Param> params(
      FxFunction function, StatementWriter writer, DiagnosticSink sink) {
    var lists =
        function.params().stream()
            .filter(param -> param.type().isEmpty())
            .map(Param::name)
            .collect(toImmutableList());
    if (!lists.contains("inputs") || !lists.contains("sizes")) {
      return function.params();
    }
    for (var hook : writer.items("hooks").stream().limit(1).toList()) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.UNSUPPORTED,
              hook.span(),
              "the graph of compiled autograd calls hooks, which are Python functions of the"
                  + " program",
              HINT));
    }
    var params = ImmutableList.<Param>builder();
    for (var list : List.of("inputs", "sizes")) {
      var items = new TreeMap<Long, Statement>();
      for (var item : writer.items(list)) {
        if (item.value() instanceof FxExpr.Index(_, FxExpr.Int(long i))
            && i >= 0
            && i < MAX_ARGUMENTS) {
          items.putIfAbsent(i, item);
        }
      }
      var values = ImmutableMap.<FxExpr, FxExpr>builder();
      for (long i = 0; !items.isEmpty() && i <= items.lastKey(); i++) {
        @Nullable Statement item = items.get(i);
        if (item == null) {
          // A hole: nothing reads the argument at this place.
          params.add(new Param(writer.unique(list + "_" + i), Optional.empty(), function.span()));
        } else {
          params.add(new Param(item.name(), item.type(), item.span()));
          values.put(new FxExpr.Int(i), new FxExpr.Name(item.name()));
        }
      }
      writer.renaming().takeApart(list, values.buildOrThrow());
    }
    return params.build();
  }
}
