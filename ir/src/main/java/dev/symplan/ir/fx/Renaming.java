package dev.symplan.ir.fx;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The meaning of names that no statement defines any more. */
final class Renaming {
  private final Map<String, FxExpr> names = new HashMap<>();

  /** The results of statements that were taken apart, by what takes them out: {@code [1]}. */
  private final Map<String, ImmutableMap<FxExpr, FxExpr>> results = new HashMap<>();

  void rename(String name, FxExpr value) {
    names.put(name, value);
  }

  /** Says what {@code name[index]} stands for, for each index. */
  void takeApart(String name, ImmutableMap<FxExpr, FxExpr> byIndex) {
    results.put(name, byIndex);
  }

  boolean renames(String name) {
    return names.containsKey(name);
  }

  /** {@return whether another name stands for this one} */
  boolean hasAlias(String name) {
    return names.containsValue(new FxExpr.Name(name));
  }

  /** {@return an expression in terms of the names that are still defined} */
  FxExpr resolved(FxExpr expr) {
    return switch (expr) {
      case FxExpr.Name(String name) -> names.getOrDefault(name, expr);
      case FxExpr.Seq(var items) -> new FxExpr.Seq(resolved(items));
      case FxExpr.Index(FxExpr of, FxExpr index) -> element(of, index);
      case FxExpr.Binary(var operator, FxExpr left, FxExpr right) ->
          new FxExpr.Binary(operator, resolved(left), resolved(right));
      case FxExpr.Negative(FxExpr operand) -> new FxExpr.Negative(resolved(operand));
      case FxExpr.Call(String target, var args, var keywords, var span) ->
          new FxExpr.Call(target, resolved(args), resolved(keywords), span);
      case FxExpr.Dict(var keys, var values) -> new FxExpr.Dict(keys, resolved(values));
      case FxExpr.Int _, FxExpr.Float _, FxExpr.Str _, FxExpr.Bool _, FxExpr.None _ -> expr;
    };
  }

  private ImmutableList<FxExpr> resolved(List<FxExpr> exprs) {
    return exprs.stream().map(this::resolved).collect(toImmutableList());
  }

  private ImmutableMap<String, FxExpr> resolved(Map<String, FxExpr> exprs) {
    var resolved = ImmutableMap.<String, FxExpr>builder();
    exprs.forEach((key, value) -> resolved.put(key, resolved(value)));
    return resolved.buildOrThrow();
  }

  private FxExpr element(FxExpr of, FxExpr index) {
    if (of instanceof FxExpr.Name(String root) && results.containsKey(root)) {
      @Nullable FxExpr result = results.getOrDefault(root, ImmutableMap.of()).get(index);
      if (result != null) {
        return result;
      }
    }
    var list = resolved(of);
    return list instanceof FxExpr.Seq(var items)
            && index instanceof FxExpr.Int(long i)
            && i >= 0
            && i < items.size()
        ? items.get((int) i)
        : new FxExpr.Index(list, index);
  }
}
