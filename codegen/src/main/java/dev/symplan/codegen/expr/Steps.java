package dev.symplan.codegen.expr;

import com.google.common.collect.ImmutableList;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Expressions in an order in which they can be computed, each equal one once.
 *
 * @param nodes parameters, numbers, and primitives of nodes before them
 * @param args for each node the positions of its arguments
 * @param results where the value of each expression is
 */
public record Steps(
    ImmutableList<Expr> nodes,
    ImmutableList<ImmutableList<Integer>> args,
    ImmutableList<Integer> results) {

  public static Steps of(Iterable<Expr> exprs) {
    var nodes = new ArrayList<Expr>();
    var args = new ArrayList<ImmutableList<Integer>>();
    var known = new HashMap<Expr, Integer>();
    var results = ImmutableList.<Integer>builder();
    for (var expr : exprs) {
      results.add(add(expr, nodes, args, known));
    }
    return new Steps(ImmutableList.copyOf(nodes), ImmutableList.copyOf(args), results.build());
  }

  private static int add(
      Expr expr, List<Expr> nodes, List<ImmutableList<Integer>> args, Map<Expr, Integer> known) {
    var before = known.get(expr);
    if (before != null) {
      return before;
    }
    var own = ImmutableList.<Integer>builder();
    if (expr instanceof Expr.Apply(var _, var inner)) {
      inner.forEach(arg -> own.add(add(arg, nodes, args, known)));
    }
    nodes.add(expr);
    args.add(own.build());
    known.put(expr, nodes.size() - 1);
    return nodes.size() - 1;
  }
}
