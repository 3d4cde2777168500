package dev.symplan.ir;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Sets;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpResult;
import java.util.Collections;
import java.util.OptionalInt;
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

  /** {@return the arguments, by name} */
  public OpCall call() {
    return new OpCall(def.schema(), args);
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
   * Calls {@code action} for each argument that may be a view of any other argument once the op has
   * run. Only ops without a rule have such arguments.
   */
  public void forEachMoved(Consumer<? super Value> action) {
    var params = def.schema().params();
    for (int i = 0; i < params.size(); i++) {
      if (def.rule().isEmpty() && params.get(i).alias().isAnything()) {
        args.get(i).forEachValue(action);
      }
    }
  }

  /**
   * Calls {@code action} for each argument and each other result that a result may be a view of, as
   * far as only the schema says so: a rule, or a result that is an argument, says it exactly.
   */
  public void forEachSource(int result, Consumer<? super Value> action) {
    if (def.rule().isPresent()) {
      return;
    }
    var sets = setsOf(result);
    if (sets.isEmpty()) {
      return;
    }
    var params = def.schema().params();
    for (int i = 0; i < params.size(); i++) {
      var alias = params.get(i).alias();
      if (!Collections.disjoint(Sets.union(alias.before(), alias.after()), sets)) {
        args.get(i).forEachValue(action);
      }
    }
    for (int i = 0; i < results.size(); i++) {
      if (i != result && !Collections.disjoint(setsOf(i), sets)) {
        action.accept(results.get(i));
      }
    }
  }

  /** The alias sets of a result. Where a list is spread out, any of the schema's may be its. */
  private ImmutableSet<String> setsOf(int result) {
    var given = def.schema().results();
    if (given.size() == results.size()) {
      return given.get(result).alias().after();
    }
    return given.stream()
        .flatMap(one -> one.alias().after().stream())
        .collect(ImmutableSet.toImmutableSet());
  }

  /**
   * {@return what the op's rule says of its results: types, and which are views of which argument;
   * without a rule, the annotated types, in storage of their own unless the result is an argument}
   */
  public ImmutableList<OpResult> infer() {
    return def.infer(args).orElseGet(this::annotated);
  }

  private ImmutableList<OpResult> annotated() {
    var inferred = ImmutableList.<OpResult>builderWithExpectedSize(results.size());
    for (int i = 0; i < results.size(); i++) {
      inferred.add(annotated(i));
    }
    return inferred.build();
  }

  private OpResult annotated(int result) {
    var type = results.get(result).type();
    var schema = def.schema();
    var param =
        schema.results().size() == results.size() ? schema.returned(result) : OptionalInt.empty();
    if (param.isPresent()
        && args.get(param.getAsInt()) instanceof Arg.Ref(Value value)
        && value.type() instanceof TensorType whole
        && type instanceof TensorType same
        && whole.withSpace(same.space()).equals(same)) {
      return OpResult.view(value, same.sizes(), same.strides(), 0);
    }
    return OpResult.fresh(type);
  }
}
