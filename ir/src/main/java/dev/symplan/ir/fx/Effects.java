package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.fx.FxFunction.Statement;
import java.util.LinkedHashMap;

/**
 * Takes {@code (token, result…) = with_effects(token, op, arg…)} apart. Tokens keep such ops in
 * order, which the planner does with all ops that it does not know.
 */
final class Effects {
  private Effects() {}

  /** {@return whether the statement was taken apart; if not, nothing is added} */
  static boolean takeApart(
      StatementWriter writer, OpTargets targets, Statement statement, FxExpr.Call call) {
    var op = HigherOrder.operator(call, 1);
    if (op.isEmpty()) {
      return false;
    }
    var items = writer.items(statement.name());
    boolean several =
        targets
            .schema(op.get(), ImmutableSet.of())
            .map(schema -> schema.results().size() > 1)
            .orElse(writer.item(statement.name(), new FxExpr.Int(2)).isPresent());
    var first = writer.item(statement.name(), new FxExpr.Int(1)).filter(item -> !several);
    var name = first.map(Statement::name).orElse(statement.name());
    var results = new LinkedHashMap<FxExpr, FxExpr>();
    results.put(new FxExpr.Int(0), call.args().getFirst());
    for (var item : items) {
      if (item.value() instanceof FxExpr.Index(_, FxExpr.Int(long i)) && i > 0) {
        results.put(
            new FxExpr.Int(i),
            several
                ? new FxExpr.Index(new FxExpr.Name(name), new FxExpr.Int(i - 1))
                : new FxExpr.Name(name));
      }
    }
    writer.emit(
        statement,
        name,
        first.flatMap(Statement::type),
        new FxExpr.Call(
            op.get(), call.args().subList(2, call.args().size()), call.keywords(), call.span()));
    writer.renaming().takeApart(statement.name(), ImmutableMap.copyOf(results));
    return true;
  }
}
