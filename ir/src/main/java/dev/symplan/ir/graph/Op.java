package dev.symplan.ir.graph;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Iterables;
import com.google.common.collect.Sets;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.ImmutableLists;
import dev.symplan.ir.NoneType;
import dev.symplan.ir.Notes;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.op.CollectiveCall;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.Param;
import java.util.Collections;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** One operation of a graph. Immutable; ops with equal parts are equal. */
public final class Op {
  private final OpDef def;
  private final ImmutableList<Arg> args;
  private final ImmutableList<Value> results;
  private final Span span;
  private final Notes notes;
  private final ImmutableList<Value> operands;

  /** Null until it is asked for. */
  private @Nullable ImmutableList<OpResult> inferred;

  /**
   * @param args one for each parameter of the schema, in its order, defaults filled in
   * @param results one for each tensor that the op gives, a {@code Tensor[]} result spread out;
   *     results that nothing reads may be {@link NoneType}
   */
  public Op(
      OpDef def, ImmutableList<Arg> args, ImmutableList<Value> results, Span span, Notes notes) {
    this(def, args, results, span, notes, Arg.operandsOf(args), null);
  }

  private Op(
      OpDef def,
      ImmutableList<Arg> args,
      ImmutableList<Value> results,
      Span span,
      Notes notes,
      ImmutableList<Value> operands,
      @Nullable ImmutableList<OpResult> inferred) {
    if (args.size() != def.schema().params().size()) {
      throw new IllegalArgumentException(
          "%s takes %s arguments, not %s"
              .formatted(def.name(), def.schema().params().size(), args.size()));
    }
    this.def = def;
    this.args = args;
    this.results = results;
    this.span = span;
    this.notes = notes;
    this.operands = operands;
    this.inferred = inferred;
  }

  /** {@return the same op, with what its rule says of its results, so that nothing asks again} */
  Op withInferred(ImmutableList<OpResult> known) {
    return new Op(def, args, results, span, notes, operands, known);
  }

  /** {@return the same op of other values, which have the same types} */
  public Op map(UnaryOperator<Value> change) {
    @Nullable ImmutableList<OpResult> known = inferred;
    return new Op(
        def,
        ImmutableLists.map(args, arg -> arg.map(change)),
        ImmutableLists.map(results, change),
        span,
        notes,
        ImmutableLists.map(operands, change),
        known == null ? null : ImmutableLists.map(known, result -> result.map(change)));
  }

  public OpDef def() {
    return def;
  }

  /** {@return one argument for each parameter of the schema, in its order} */
  public ImmutableList<Arg> args() {
    return args;
  }

  public ImmutableList<Value> results() {
    return results;
  }

  public Span span() {
    return span;
  }

  public Notes notes() {
    return notes;
  }

  /** {@return the values that this op reads, once for each mention} */
  public ImmutableList<Value> operands() {
    return operands;
  }

  /** {@return the argument of the parameter called so} */
  public Arg arg(String param) {
    return args.get(def.schema().indexOf(param));
  }

  /** {@return the arguments, by name} */
  public OpCall call() {
    return new OpCall(def, args);
  }

  /** {@return its name for people: that of its first result, or else of its op} */
  public String label() {
    return results.isEmpty() || results.getFirst().name().isEmpty()
        ? def.name().name()
        : results.getFirst().name();
  }

  /** {@return the collective that this op is, if it is one} */
  public Optional<CollectiveCall> collective() {
    return def.collective().map(spec -> new CollectiveCall(spec, call()));
  }

  /** {@return the only result} */
  public Value result() {
    if (results.size() != 1) {
      throw new IllegalStateException(def.name() + " has " + results.size() + " results");
    }
    return results.getFirst();
  }

  /**
   * {@return whether an operand or result has complex elements, which kernels compute by their
   * parts}
   */
  public boolean isComplex() {
    for (var value : Iterables.concat(operands(), results)) {
      if (value.type() instanceof TensorType type && type.dtype().kind() == DType.Kind.COMPLEX) {
        return true;
      }
    }
    return false;
  }

  /** {@return the arguments that this op writes into, by its schema} */
  public ImmutableList<Value> written() {
    return def.schema().mutates()
        ? argumentsWhere(param -> param.alias().write())
        : ImmutableList.of();
  }

  /**
   * {@return the arguments that may be views of any other argument once the op has run} Only ops
   * without a rule have such arguments.
   */
  public ImmutableList<Value> moved() {
    return def.rule().isPresent()
        ? ImmutableList.of()
        : argumentsWhere(param -> param.alias().isAnything());
  }

  private ImmutableList<Value> argumentsWhere(Predicate<Param> condition) {
    var params = def.schema().params();
    var values = ImmutableList.<Value>builder();
    for (int i = 0; i < params.size(); i++) {
      if (condition.test(params.get(i))) {
        values.addAll(args.get(i).operands());
      }
    }
    return values.build();
  }

  /**
   * {@return the arguments and other results that a result may be a view of, as far as only the
   * schema says so} A rule, or a result that is an argument, says it exactly.
   */
  public ImmutableList<Value> sources(int result) {
    var sets = def.rule().isPresent() ? ImmutableSet.<String>of() : setsOf(result);
    if (sets.isEmpty()) {
      return ImmutableList.of();
    }
    var values = ImmutableList.<Value>builder();
    values.addAll(
        argumentsWhere(
            param ->
                !Collections.disjoint(
                    Sets.union(param.alias().before(), param.alias().after()), sets)));
    for (int i = 0; i < results.size(); i++) {
      if (i != result && !Collections.disjoint(setsOf(i), sets)) {
        values.add(results.get(i));
      }
    }
    return values.build();
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
   * {@return the floating-point operations that decide how long the op takes; 0 if its memory
   * traffic does}
   */
  public double flops() {
    return def.flops()
        .flatMap(
            count ->
                results.stream()
                    .filter(Value::isTensor)
                    .findFirst()
                    .map(result -> count.of(call(), result.tensor())))
        .orElse(0.0);
  }

  /**
   * {@return the results by the op's rule: types, and which are views of which argument; without a
   * rule, the annotated types, in storage of their own unless the result is an argument}
   */
  public ImmutableList<OpResult> infer() {
    // Threads that race here compute the same.
    @Nullable ImmutableList<OpResult> known = inferred;
    if (known == null) {
      known = def.infer(args).orElseGet(this::annotated);
      inferred = known;
    }
    return known;
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

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof Op op
        && def.equals(op.def)
        && args.equals(op.args)
        && results.equals(op.results)
        && span.equals(op.span)
        && notes.equals(op.notes);
  }

  @Override
  public int hashCode() {
    return Objects.hash(def.name(), args, results);
  }

  @Override
  public String toString() {
    return "%s = %s%s".formatted(results, def.name(), args);
  }
}
