package dev.symplan.ir;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpResult;
import java.util.function.Consumer;

/**
 * One operation of a graph.
 *
 * @param args one for each parameter of the schema, in its order, defaults filled in
 * @param results one for each tensor that the op gives, a {@code Tensor[]} result spread out;
 *     results that nothing reads may be {@link NoneType}
 */
public record Op(
    OpDef def, ImmutableList<Arg> args, ImmutableList<Value> results, Span span, Notes notes) {

  public Op {
    if (args.size() != def.schema().params().size()) {
      throw new IllegalArgumentException(
          "%s takes %d arguments, not %d"
              .formatted(def.name(), def.schema().params().size(), args.size()));
    }
  }

  /** {@return the argument of the parameter called so} */
  public Arg arg(String param) {
    return args.get(def.schema().indexOf(param));
  }

  /** {@return the only result} */
  public Value result() {
    if (results.size() != 1) {
      throw new IllegalStateException(def.name() + " has " + results.size() + " results");
    }
    return results.getFirst();
  }

  /** Calls {@code action} for each value this op reads, once for each mention. */
  public void forEachOperand(Consumer<? super Value> action) {
    for (Arg arg : args) {
      arg.forEachValue(action);
    }
  }

  /** Calls {@code action} for each argument that this op writes into, by its schema. */
  public void forEachWritten(Consumer<? super Value> action) {
    var params = def.schema().params();
    for (int i = 0; i < params.size(); i++) {
      if (params.get(i).alias().write()) {
        args.get(i).forEachValue(action);
      }
    }
  }

  /**
   * {@return what the op's rule says of its results: types, and which are views of which argument;
   * for an opaque op, fresh storage of the annotated types}
   */
  public ImmutableList<OpResult> infer() {
    return def.infer(args)
        .orElseGet(
            () ->
                results.stream()
                    .map(value -> OpResult.fresh(value.type()))
                    .collect(ImmutableList.toImmutableList()));
  }
}
