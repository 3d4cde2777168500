package dev.symplan.planner.pass.rewrite;

import com.google.common.base.Suppliers;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableListMultimap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.aten.FsdpOps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpName;
import dev.symplan.ir.op.OpSchema;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.function.ToIntFunction;

/**
 * Takes importer quirks away: in-place, {@code _out} and {@code _autograd} collectives become the
 * functional ones, and what nothing reads goes.
 *
 * <p>A collective that wrote into its argument becomes functional, and what read the argument reads
 * the result; where the argument's memory is seen by others (a graph input, other views), the
 * result is copied back into it.
 */
public final class Normalize {
  private static final OpDef WAIT = builtin("_c10d_functional::wait_tensor");
  private static final OpDef COPY = builtin("aten::copy_");

  private final Graph graph;
  private final Aliases aliases;
  private final ToIntFunction<String> groupSize;
  private final Predicate<String> isWithinDomain;
  private final GraphCopier copier;

  /** By value, the last op that reads it; beyond all for an output. */
  private final Supplier<int[]> lastUse;

  /** The results in each storage. */
  private final Supplier<ImmutableListMultimap<Integer, Value>> valuesOf;

  private Normalize(
      Graph graph,
      Aliases aliases,
      ToIntFunction<String> groupSize,
      Predicate<String> isWithinDomain) {
    this.graph = graph;
    this.aliases = aliases;
    this.groupSize = groupSize;
    this.isWithinDomain = isWithinDomain;
    this.copier = new GraphCopier(graph);
    this.lastUse = Suppliers.memoize(() -> lastUses(graph));
    this.valuesOf = Suppliers.memoize(this::valuesByStorage);
  }

  /**
   * {@return a functional graph without dead code} The same graph if it is one already.
   *
   * @param groupSize the number of ranks in each part of a group
   * @param isWithinDomain whether the ranks of each part of a group are in one NVLink domain
   */
  public static Graph run(
      Graph graph,
      Aliases aliases,
      ToIntFunction<String> groupSize,
      Predicate<String> isWithinDomain) {
    return removeDeadCode(new Normalize(graph, aliases, groupSize, isWithinDomain).functionalize());
  }

  /**
   * {@return a graph without ops that only other ops define} The same graph if it has none.
   *
   * @param groupSize the number of ranks in each part of a group
   */
  public static Graph ofDefinedOps(Graph graph, ToIntFunction<String> groupSize) {
    return graph.ops().stream().anyMatch(op -> isDefinedByOthers(op.def()))
        ? run(graph, Aliases.of(graph), groupSize, _ -> true)
        : graph;
  }

  private static boolean isDefinedByOthers(OpDef def) {
    return FusedCollective.is(def)
        || VariableAllToAll.is(def)
        || FsdpOps.copies(def.schema())
        || def.collective().flatMap(CollectiveSpec::foreign).isPresent()
        || isAutograd(def);
  }

  /** {@return whether ops of such a definition may become others} */
  static boolean mayChange(OpDef def) {
    return isDefinedByOthers(def)
        || SeparateRows.haveDim(def)
        || (def.collective().isPresent() && def.schema().mutates());
  }

  private static boolean isAutograd(OpDef def) {
    return def.name().namespace().equals("_c10d_functional_autograd");
  }

  private static OpDef builtin(String name) {
    return BuiltinOps.registry().get(name);
  }

  private ImmutableListMultimap<Integer, Value> valuesByStorage() {
    var byStorage = ImmutableListMultimap.<Integer, Value>builder();
    for (var op : graph.ops()) {
      op.results().forEach(value -> byStorage.put(aliases.id(value), value));
    }
    return byStorage.build();
  }

  private static int[] lastUses(Graph graph) {
    var last = new int[graph.valueCount()];
    for (int i = 0; i < graph.ops().size(); i++) {
      int position = i;
      graph.ops().get(i).operands().forEach(value -> last[value.id()] = position);
    }
    graph.outputValues().forEach(value -> last[value.id()] = Integer.MAX_VALUE);
    return last;
  }

  private Graph functionalize() {
    for (int i = 0; i < graph.ops().size(); i++) {
      var op = graph.ops().get(i);
      if (takeApart(op, i)) {
        continue;
      }
      var collective = Collective.of(op, i);
      if (collective.isPresent()
          && op.def().schema().mutates()
          && collective.get().kind() != Kind.CUSTOM) {
        makeFunctional(collective.get());
      } else if (isAutograd(op.def())) {
        var name = op.def().name();
        var plain = functionalOf(op, new OpName("_c10d_functional", name.name(), name.overload()));
        copier.emit(op, plain, copier.now(op.args()));
      } else {
        copier.keep(op);
      }
    }
    return copier.finish();
  }

  /** {@return whether other ops took the place of one that no rule has checked} */
  private boolean takeApart(Op op, int at) {
    var emitter = new OpEmitter(copier, op, groupSize);
    try {
      if (FusedCollective.is(op.def())) {
        FusedCollective.emit(emitter);
      } else if (VariableAllToAll.is(op.def())) {
        VariableAllToAll.emit(emitter);
      } else if (FsdpOp.is(op)) {
        FsdpOp.emit(emitter);
      } else if (SeparateRows.has(op)
          && !isWithinDomain.test(op.collective().orElseThrow().group())) {
        SeparateRows.emit(emitter);
      } else if (op.def().collective().flatMap(CollectiveSpec::foreign).isPresent()) {
        makeFunctional(emitter, at);
      } else {
        return false;
      }
      return true;
    } catch (OpTypeException e) {
      throw emitter.error(String.valueOf(e.getMessage()));
    }
  }

  /** A collective of another library, which gives a tensor or writes one. */
  private void makeFunctional(OpEmitter emitter, int at) {
    var op = emitter.at();
    var call = op.collective().orElseThrow();
    var target = call.target();
    var made = ForeignCollective.emit(emitter);
    call.scratch().forEach(scratch -> checkScratch(op, at, scratch));
    if (call.kind() == Kind.ALL_REDUCE && call.root().isPresent()) {
      target.ifPresent(written -> checkUnwritten(op, at, written));
    }
    if (target.isPresent()
        && (seenByOthers(target.get(), firstFrom(at), at)
            || !made.tensor().strides().equals(target.get().tensor().strides()))) {
      var back = copyBack(made, target.get(), op.span());
      op.results().forEach(result -> copier.replace(result, back));
    } else {
      target.ifPresent(written -> copier.replace(written, made));
    }
  }

  /** Contents that an op leaves in its scratch memory are not modelled. */
  private void checkScratch(Op op, int at, Value scratch) {
    if (isReadLater(scratch, firstFrom(at), at)
        || lastUse.get()[scratch.id()] > at
        || !aliases.families().isAlone(aliases.id(scratch))) {
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.UNSUPPORTED,
              op.span(),
              "%s overwrites '%s', which is read later".formatted(op.def().name(), scratch.name()),
              "give it a copy: aten::clone"));
    }
  }

  /**
   * Only the root gets the sum, so that on other ranks the target keeps what it had. Where that is
   * unspecified, it may as well be the sum.
   */
  private void checkUnwritten(Op op, int at, Value target) {
    int storage = aliases.id(target);
    var before = graph.ops().subList(0, at);
    boolean unwritten =
        aliases.families().isAlone(storage)
            && !aliases.storage(storage).isInput()
            && before.stream()
                .flatMap(other -> other.operands().stream())
                .noneMatch(value -> isIn(value, storage))
            && before.stream().allMatch(other -> leavesUnspecified(other, storage));
    if (!unwritten) {
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.UNSUPPORTED,
              op.span(),
              "'%s' keeps its elements on all ranks but the root, which is not supported"
                  .formatted(target.name()),
              "give the op a new tensor: aten::empty_like"));
    }
  }

  private boolean leavesUnspecified(Op op, int storage) {
    for (int i = 0; i < op.results().size(); i++) {
      if (isIn(op.results().get(i), storage)
          && (op.def().rule().isEmpty() || !op.infer().get(i).unspecified())) {
        return false;
      }
    }
    return true;
  }

  private boolean isIn(Value value, int storage) {
    return value.isTensor() && aliases.id(value) == storage;
  }

  /** {@return the first id of what is defined from an op on} */
  private int firstFrom(int at) {
    return graph.ops().stream()
        .skip(at)
        .flatMap(op -> op.results().stream())
        .mapToInt(Value::id)
        .findFirst()
        .orElse(graph.valueCount());
  }

  private void makeFunctional(Collective collective) {
    var op = collective.op();
    var name = op.def().name();
    var functional = name.name().replaceFirst("(_out|_)$", "");
    var def = functionalOf(op, new OpName("_c10d_functional", functional, ""));
    var written = written(op);
    var args = matchArgs(op, def.schema());
    var types = functionalTypes(op, def, args);
    var made = copier.emit(op, def, args, types);
    for (int i = 0; i < written.size(); i++) {
      var target = written.get(i);
      var result = made.results().get(i);
      if (seenByOthers(target, op.results().get(i).id(), collective.index())
          || !types.get(i).strides().equals(target.tensor().strides())) {
        copier.replace(op.results().get(i), copyBack(result, target, op.span()));
      } else {
        copier.replace(target, result);
      }
    }
  }

  /** {@return the target with a collective's result in it} */
  private Value copyBack(Value result, Value target, Span span) {
    var waited = call(WAIT, result, result.name() + "_done");
    var back = copier.now(target);
    copier.insert(
        COPY,
        ImmutableList.of(new Arg.Ref(back), new Arg.Ref(waited), new Arg.Bool(false)),
        result.name() + "_back",
        back.type(),
        span);
    return back;
  }

  /**
   * The results' types: as what was written lies, unless the functional form gives another layout.
   */
  private static List<TensorType> functionalTypes(Op op, OpDef def, ImmutableList<Arg> args) {
    var inferred = def.infer(args).orElseThrow();
    var types = new ArrayList<TensorType>();
    for (int i = 0; i < op.results().size(); i++) {
      var old = op.results().get(i).tensor();
      var fresh = ((TensorType) inferred.get(i).type()).withSpace(old.space());
      types.add(
          fresh.storageBytes() == old.storageBytes() && sameStrides(old, fresh) ? old : fresh);
    }
    return types;
  }

  /** Strides of dimensions of one element mean nothing. */
  private static boolean sameStrides(TensorType a, TensorType b) {
    for (int dim = 0; dim < a.rank(); dim++) {
      if (a.size(dim) > 1 && a.stride(dim) != b.stride(dim)) {
        return false;
      }
    }
    return true;
  }

  private Value call(OpDef def, Value operand, String name) {
    return copier.insert(
        def, ImmutableList.of(new Arg.Ref(operand)), name, operand.type(), operand.span());
  }

  private static OpDef functionalOf(Op op, OpName name) {
    return BuiltinOps.registry()
        .find(name)
        .map(def -> op.def().collective().isPresent() ? def.demandingAs(op.def()) : def)
        .orElseThrow(
            () ->
                new CompileException(
                    Diagnostic.error(
                        DiagnosticCode.UNSUPPORTED,
                        op.span(),
                        "%s has no functional form %s".formatted(op.def().name(), name))));
  }

  /** The arguments of the functional form, by name; the others are left out. */
  private ImmutableList<Arg> matchArgs(Op op, OpSchema functional) {
    var args = ImmutableList.<Arg>builder();
    for (var param : functional.params()) {
      args.add(
          op.def().schema().hasParam(param.name())
              ? copier.now(op.arg(param.name()))
              : param.defaultValue().orElse(Arg.None.NONE));
    }
    return args.build();
  }

  /** The tensors that the op writes into, one for each of its results. */
  private static List<Value> written(Op op) {
    var values = new ArrayList<Value>();
    values.addAll(op.written());
    return values;
  }

  /**
   * Whether somebody reads the memory of {@code target} other than as {@code target} itself.
   *
   * @param first the first id of what is defined from here on: that reads the target or the result,
   *     and so the new value
   */
  private boolean seenByOthers(Value target, int first, int at) {
    int storage = aliases.id(target);
    return aliases.storage(storage).isInput()
        || !aliases.families().isAlone(storage)
        || isReadLater(target, first, at)
        || !aliases.isWhole(target);
  }

  private boolean isReadLater(Value target, int first, int at) {
    return valuesOf.get().get(aliases.id(target)).stream()
        .anyMatch(
            value ->
                value.id() != target.id() && value.id() < first && lastUse.get()[value.id()] > at);
  }

  /** {@return the graph without ops whose results nothing reads; the same graph if all are} */
  static Graph removeDeadCode(Graph graph) {
    var live = new boolean[graph.valueCount()];
    graph.outputValues().forEach(value -> live[value.id()] = true);
    if (isAllRead(graph)) {
      return graph;
    }
    var kept = new ArrayDeque<Op>(graph.ops().size());
    for (var op : graph.ops().reverse()) {
      boolean isRead = false;
      for (var result : op.results()) {
        isRead |= live[result.id()];
      }
      if (isRead || mustStay(op)) {
        op.operands().forEach(value -> live[value.id()] = true);
        kept.addFirst(op);
      }
    }
    return kept.size() == graph.ops().size() ? graph : graph.withOps(kept);
  }

  /** Whether something reads what each op makes, or else the op must stay. */
  private static boolean isAllRead(Graph graph) {
    var read = new boolean[graph.valueCount()];
    graph.outputValues().forEach(value -> read[value.id()] = true);
    Parallel.forEach(
        graph.ops().size(),
        (from, to) ->
            graph
                .ops()
                .subList(from, to)
                .forEach(op -> op.operands().forEach(value -> read[value.id()] = true)));
    return Parallel.filter(
            graph.ops(),
            op -> !mustStay(op) && op.results().stream().noneMatch(own -> read[own.id()]))
        .isEmpty();
  }

  /** Other ranks take part in a collective whether or not this one reads its result. */
  private static boolean mustStay(Op op) {
    return op.def().hasEffect() || op.def().collective().isPresent();
  }
}
