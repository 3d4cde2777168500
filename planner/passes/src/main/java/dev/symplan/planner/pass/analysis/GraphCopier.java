package dev.symplan.planner.pass.analysis;

import com.google.common.base.Suppliers;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Notes;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Copies a graph op by op, with ops left out, replaced or inserted; value ids of the copy are dense
 * again. What stays the same is shared: if nothing changes, the copy is the source itself.
 */
public final class GraphCopier {
  private final Graph source;
  private final @Nullable Value[] mapped;
  private final List<Value> inputs = new ArrayList<>();
  private final List<Op> ops = new ArrayList<>();
  private final Supplier<Set<String>> names = Suppliers.memoize(this::sourceNames);
  private final Map<String, Integer> suffixes = new HashMap<>();
  private int nextId;
  private boolean changed;

  public GraphCopier(Graph source) {
    this(source, Value::type);
  }

  /** With inputs of other types, which may differ in where they ask to live only. */
  public GraphCopier(Graph source, Function<Value, Type> inputType) {
    this.source = source;
    this.mapped = new @Nullable Value[source.valueCount()];
    for (var input : source.inputs()) {
      inputs.add(copy(input, inputType.apply(input)));
    }
  }

  private Set<String> sourceNames() {
    var names = new HashSet<String>();
    source.inputs().forEach(input -> names.add(input.name()));
    source.ops().forEach(op -> op.results().forEach(result -> names.add(result.name())));
    return names;
  }

  private Value copy(Value old, Type type) {
    int id = nextId++;
    var value =
        id == old.id() && type == old.type()
            ? old
            : new Value(id, old.name(), type, old.span(), old.annotated());
    changed |= value != old;
    mapped[old.id()] = value;
    return value;
  }

  /** {@return what stands for a value of the source from here on} */
  public Value now(Value old) {
    @Nullable Value value = mapped[old.id()];
    if (value == null) {
      throw new IllegalStateException(old.name() + " is used before it is defined");
    }
    return value;
  }

  /** From here on, uses of {@code old} read {@code replacement}, a value of the copy. */
  public void replace(Value old, Value replacement) {
    changed |= replacement != old;
    mapped[old.id()] = replacement;
  }

  /** {@return the argument with the values of the copy} */
  public Arg now(Arg arg) {
    return switch (arg) {
      case Arg.Ref(Value value) -> now(value) == value ? arg : new Arg.Ref(now(value));
      case Arg.Seq(ImmutableList<Arg> items) -> now(items) == items ? arg : new Arg.Seq(now(items));
      case Arg.Literal _ -> arg;
    };
  }

  public ImmutableList<Arg> now(ImmutableList<Arg> args) {
    var now = ImmutableList.<Arg>builderWithExpectedSize(args.size());
    boolean same = true;
    for (var arg : args) {
      var own = now(arg);
      same &= own == arg;
      now.add(own);
    }
    return same ? args : now.build();
  }

  /** Copies an op as it is, its operands as they stand now. */
  public Op keep(Op op) {
    if (changed || ops.size() >= source.ops().size() || source.ops().get(ops.size()) != op) {
      return emit(op, op.def(), now(op.args()));
    }
    // Up to here, every value stands for itself.
    op.results().forEach(result -> mapped[result.id()] = result);
    nextId += op.results().size();
    ops.add(op);
    return op;
  }

  /** Copies an op with another definition and arguments; its results stand for the old ones. */
  public Op emit(Op op, OpDef def, ImmutableList<Arg> newArgs) {
    return emit(op.results(), def, newArgs, op);
  }

  /** Makes an op whose results stand for those of several; {@code at} is where people find it. */
  public Op emit(List<Value> old, OpDef def, ImmutableList<Arg> newArgs, Op at) {
    return emit(old, def, newArgs, at, old.stream().map(Value::type).toList());
  }

  /** As {@link #emit}, with results of other types. */
  public Op emit(Op op, OpDef def, ImmutableList<Arg> newArgs, List<? extends Type> types) {
    return emit(op.results(), def, newArgs, op, types);
  }

  /** As {@link #emit}, for any results. */
  public Op emit(
      List<Value> old, OpDef def, ImmutableList<Arg> args, Op at, List<? extends Type> types) {
    var results = ImmutableList.<Value>builderWithExpectedSize(old.size());
    boolean same = def == at.def() && args == at.args() && old == at.results();
    for (int i = 0; i < old.size(); i++) {
      var result = copy(old.get(i), types.get(i));
      same &= result == old.get(i);
      results.add(result);
    }
    return add(same ? at : new Op(def, args, results.build(), at.span(), at.notes()));
  }

  private Op add(Op op) {
    changed |= ops.size() >= source.ops().size() || source.ops().get(ops.size()) != op;
    ops.add(op);
    return op;
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

  /** What an op gives may lie as an input does, but only inputs can be given away. */
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

  /** {@return the copy, with these outputs} */
  public Graph finish(ImmutableList<Arg> outputs) {
    if (!changed && ops.size() == source.ops().size() && outputs.equals(source.outputs())) {
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
}
