package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.fx.FxFunction.Statement;
import java.util.Optional;

/** Puts the statements of a subgraph in the place of a call of it. */
final class Inlining {
  private final StatementWriter writer;
  private final Statement call;
  private final FxFunction subgraph;

  /** Whether results are taken out of what the call gives. */
  private final boolean tuple;

  /** The names that the subgraph's have here. */
  private final Renaming names = new Renaming();

  private Inlining(StatementWriter writer, Statement call, String op, FxFunction subgraph) {
    this.writer = writer;
    this.call = call;
    this.subgraph = subgraph;
    // The subgraph of control_deps is one op, whose results the call stands for.
    this.tuple =
        !writer.items(call.name()).isEmpty()
            && !(op.equals("control_deps") && subgraph.results().size() == 1);
  }

  /**
   * Inlines one call.
   *
   * @param subgraph without higher-order ops; its inputs after the arguments are constants
   */
  static void inline(
      StatementWriter writer,
      ModuleAttributes attributes,
      Statement call,
      String op,
      FxFunction subgraph,
      ImmutableList<FxExpr> args) {
    var one = new Inlining(writer, call, op, subgraph);
    one.bindInputs(args, attributes);
    one.nameResults();
    one.addStatements();
    one.bindResults();
  }

  /**
   * {@return the arguments of the subgraph, which PyTorch 2.6 passes as a tuple}
   *
   * @param first the position after the subgraph
   */
  static ImmutableList<FxExpr> arguments(FxExpr.Call call, String op, int first) {
    boolean named =
        op.equals("invoke_subgraph")
            && first < call.args().size()
            && call.args().get(first) instanceof FxExpr.Str;
    var args = call.args().subList(named ? first + 1 : first, call.args().size());
    return args.size() == 1 && args.getFirst() instanceof FxExpr.Seq(var list) ? list : args;
  }

  private void bindInputs(ImmutableList<FxExpr> args, ModuleAttributes attributes) {
    for (int i = 0; i < subgraph.params().size(); i++) {
      var param = subgraph.params().get(i);
      names.rename(
          param.name(),
          i < args.size() ? args.get(i) : new FxExpr.Name(attributes.addConstant(param)));
    }
  }

  /** Results get the names that they have where the subgraph is called. */
  private void nameResults() {
    for (int i = 0; i < subgraph.results().size(); i++) {
      if (subgraph.results().get(i) instanceof FxExpr.Name(String name) && !names.renames(name)) {
        var outer =
            tuple
                ? writer.item(call.name(), new FxExpr.Int(i)).map(Statement::name)
                : Optional.of(call.name());
        outer.ifPresent(wanted -> names.rename(name, new FxExpr.Name(wanted)));
      }
    }
  }

  private void addStatements() {
    for (var one : subgraph.statements()) {
      if (!names.renames(one.name())) {
        names.rename(one.name(), new FxExpr.Name(writer.unique(one.name())));
      }
      if (names.resolved(new FxExpr.Name(one.name())) instanceof FxExpr.Name(String name)) {
        writer.emitInner(
            new Statement(name, one.type(), names.resolved(one.value()), one.span(), one.notes()));
      }
    }
  }

  private void bindResults() {
    if (!tuple && subgraph.results().size() == 1) {
      writer.alias(call, names.resolved(subgraph.results().getFirst()));
      return;
    }
    var results = ImmutableMap.<FxExpr, FxExpr>builder();
    for (int i = 0; i < subgraph.results().size(); i++) {
      results.put(new FxExpr.Int(i), names.resolved(subgraph.results().get(i)));
    }
    writer.renaming().takeApart(call.name(), results.buildOrThrow());
  }
}
