package dev.symplan.planner.pass.analysis;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.base.Suppliers;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.Lists;
import dev.symplan.ir.Arg;
import dev.symplan.ir.ImmutableLists;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Notes;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Copies a graph op by op, with ops left out, replaced or inserted. What stays the same is shared,
 * values with their ids: if nothing changes, the copy is the source itself. Values of the copy that
 * the source does not have get ids after those of the source.
 */
public final class GraphCopier {
  private final Graph source;

  /** By id, what stands for a value of the source; null before its op. */
  private final @Nullable Value[] mapped;

  private final List<Value> inputs = new ArrayList<>();
  private final List<Op> ops;
  private final Supplier<Set<String>> names = Suppliers.memoize(this::sourceNames);
  private final Map<String, Integer> suffixes = new HashMap<>();
  private int nextId;

  public GraphCopier(Graph source) {
    this(source, Value::type);
  }

  /** With inputs of other types, which may differ in where they ask to live only. */
  public GraphCopier(Graph source, Function<Value, Type> inputType) {
    this.source = source;
    this.mapped = new @Nullable Value[source.valueCount()];
    this.ops = new ArrayList<>(source.ops().size());
    this.nextId = source.valueCount();
    for (var input : source.inputs()) {
      inputs.add(copy(input, inputType.apply(input)));
    }
  }

  private Set<String> sourceNames() {
    Set<String> names = ConcurrentHashMap.newKeySet(source.valueCount());
    source.inputs().forEach(input -> names.add(input.name()));
    Parallel.forEach(
        source.ops().size(),
        (from, to) ->
            source
                .ops()
                .subList(from, to)
                .forEach(op -> op.results().forEach(result -> names.add(result.name()))));
    return names;
  }

  private Value copy(Value old, Type type) {
    var value =
        type == old.type()
            ? old
            : new Value(old.id(), old.name(), type, old.span(), old.annotated());
    mapped[old.id()] = value;
    return value;
  }

  /** {@return the value that stands for one of the source from here on} */
  public Value now(Value old) {
    @Nullable Value value = mapped[old.id()];
    if (value == null) {
      throw new IllegalStateException(old.name() + " is used before it is defined");
    }
    return value;
  }

  /** From here on, uses of {@code old} read {@code replacement}, a value of the copy. */
  public void replace(Value old, Value replacement) {
    mapped[old.id()] = replacement;
  }

  /** {@return the argument with the values of the copy} */
  public Arg now(Arg arg) {
    return arg.map(this::now);
  }

  public ImmutableList<Arg> now(ImmutableList<Arg> args) {
    return ImmutableLists.map(args, this::now);
  }

  /** Copies an op as it is, its operands as they stand now. */
  public Op keep(Op op) {
    for (var operand : op.operands()) {
      if (now(operand) != operand) {
        return emit(op, op.def(), now(op.args()));
      }
    }
    op.results().forEach(result -> mapped[result.id()] = result);
    return add(op);
  }

  /** Copies an op with another definition and arguments; its results stand for the old ones. */
  public Op emit(Op op, OpDef def, ImmutableList<Arg> newArgs) {
    return emit(op.results(), def, newArgs, op);
  }

  /** Makes an op whose results stand for those of several; {@code at} is where people find it. */
  public Op emit(List<Value> old, OpDef def, ImmutableList<Arg> newArgs, Op at) {
    return emit(old, def, newArgs, at, Lists.transform(old, Value::type));
  }

  /** Like {@link #emit}, with results of other types. */
  public Op emit(Op op, OpDef def, ImmutableList<Arg> newArgs, List<? extends Type> types) {
    return emit(op.results(), def, newArgs, op, types);
  }

  /** Like {@link #emit}, for any results. */
  public Op emit(
      List<Value> old, OpDef def, ImmutableList<Arg> args, Op at, List<? extends Type> types) {
    boolean same = def == at.def() && args == at.args() && old == at.results();
    for (int i = 0; i < old.size(); i++) {
      same &= copy(old.get(i), types.get(i)) == old.get(i);
    }
    return add(same ? at : new Op(def, args, now(old), at.span(), at.notes()));
  }

  private ImmutableList<Value> now(List<Value> old) {
    return old.stream().map(this::now).collect(toImmutableList());
  }

  private Op add(Op op) {
    ops.add(op);
    return op;
  }

  /** Inserts an op without results. */
  public void insert(Op op) {
    add(op);
  }

  /** Inserts an op with one result. */
  public Value insert(OpDef def, ImmutableList<Arg> args, String name, Type type, Span span) {
    return insert(def, args, name, ImmutableList.of(type), span).getFirst();
  }

  /** Inserts an op, and returns its results. */
  public ImmutableList<Value> insert(
      OpDef def, ImmutableList<Arg> args, String name, List<? extends Type> types, Span span) {
    var results = ImmutableList.<Value>builder();
    for (var type : types) {
      results.add(new Value(nextId++, fresh(name), notDonated(type), span, true));
    }
    var all = results.build();
    add(new Op(def, args, all, span, Notes.NONE));
    return all;
  }

  /** The type of an op's result: it may lie as an input does, but only inputs can be donated. */
  private static Type notDonated(Type type) {
    return type instanceof TensorType tensor && tensor.space() == MemorySpace.DONATED
        ? tensor.withSpace(MemorySpace.ANY)
        : type;
  }

  private String fresh(String wanted) {
    var name = wanted;
    int i = suffixes.getOrDefault(wanted, 0);
    while (!names.get().add(name)) {
      name = wanted + "_" + ++i;
    }
    suffixes.put(wanted, i);
    return name;
  }

  /** {@return the copy} */
  public Graph finish() {
    return finish(now(source.outputs()));
  }

  /** {@return the copy, with these outputs} */
  public Graph finish(ImmutableList<Arg> outputs) {
    boolean same = outputs.equals(source.outputs()) && isSame(inputs, source.inputs());
    if (same && isSame(ops, source.ops())) {
      return source;
    }
    return new Graph(
        source.name(),
        source.ranks(),
        ImmutableList.copyOf(inputs),
        ImmutableList.copyOf(ops),
        outputs,
        nextId,
        source.span(),
        source.notes(),
        source.endNotes());
  }

  /** By identity: comparing all that large graphs hold takes longer than planning them. */
  private static <T> boolean isSame(List<T> copy, List<T> source) {
    return copy.size() == source.size()
        && IntStream.range(0, copy.size()).allMatch(i -> copy.get(i) == source.get(i));
  }
}
