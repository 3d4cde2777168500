package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.NoneType;
import dev.symplan.ir.Notes;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.OverlappingWrites;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * A program that grows: tensors to choose from, and ops that are added where their rules accept
 * them.
 *
 * <p>It has a version for each graph that some ranks run. Callers speak of the first version's
 * values; each has a twin in the others, made by the same op of the twins of its operands.
 */
final class Sketch {
  private static final long MAX_ELEMENTS = 400;
  private static final long MAX_BYTES = 8_192;

  /** How many times as much ops may make in programs with splices. */
  private static final long ROOM = 100;

  static final ImmutableList<DType> DTYPES =
      ImmutableList.of(
          DType.F32,
          DType.F64,
          DType.BF16,
          DType.F16,
          DType.I64,
          DType.I32,
          DType.U8,
          DType.I8,
          DType.BOOL);

  final SplittableRandom random;
  final int versions;

  /** Whether no sum depends on the order in which ranks add. */
  final boolean exact;

  private final boolean roomy;
  private final List<List<Value>> inputs = new ArrayList<>();
  private final List<List<Op>> ops = new ArrayList<>();
  private final List<Value> pool = new ArrayList<>();
  private final Map<Integer, List<Value>> twins = new HashMap<>();
  private final Map<Integer, Integer> storages = new HashMap<>();
  private final Set<Integer> fixed = new HashSet<>();
  private final Set<Integer> gaps = new HashSet<>();
  private final Set<Integer> read = new HashSet<>();
  private final Map<String, Fill> fills = new LinkedHashMap<>();
  private int nextId;
  private int nextName;

  Sketch(SplittableRandom random, int versions) {
    this(random, versions, false, false);
  }

  /**
   * @param exact whether no sum depends on the order in which ranks add
   * @param roomy whether tensors may be larger than usual
   */
  Sketch(SplittableRandom random, int versions, boolean exact, boolean roomy) {
    this.random = random;
    this.versions = versions;
    this.exact = exact;
    this.roomy = roomy;
    for (int v = 0; v < versions; v++) {
      inputs.add(new ArrayList<>());
      ops.add(new ArrayList<>());
    }
  }

  ImmutableMap<String, Fill> fills() {
    return ImmutableMap.copyOf(fills);
  }

  boolean chance(int percent) {
    return random.nextInt(100) < percent;
  }

  <T> T pick(List<T> choices) {
    return choices.get(random.nextInt(choices.size()));
  }

  @SafeVarargs
  final <T> T pick(T... choices) {
    return choices[random.nextInt(choices.length)];
  }

  long dim() {
    return switch (random.nextInt(24)) {
      case 0 -> 0;
      case 1, 2, 3 -> 1;
      case 4 -> 16;
      default -> 2 + random.nextInt(7);
    };
  }

  long[] shape(int rank) {
    while (true) {
      var sizes = new long[rank];
      for (int i = 0; i < rank; i++) {
        sizes[i] = dim();
      }
      if (rank == 2 && chance(40)) {
        sizes[1] = sizes[0];
      }
      if (Arrays.stream(sizes).reduce(1, (a, b) -> a * Math.max(1, b)) <= MAX_ELEMENTS) {
        return sizes;
      }
    }
  }

  long[] shape() {
    return shape(pick(0, 1, 1, 2, 2, 2, 2, 3, 3, 4));
  }

  DType dtype() {
    return chance(45) ? DType.F32 : pick(DTYPES);
  }

  DType floatType() {
    return chance(50) ? DType.F32 : pick(DType.F64, DType.BF16, DType.F16);
  }

  // Inputs.

  Value input(TensorType type, Fill fill) {
    return input(Collections.nCopies(versions, type), fill);
  }

  Value input(List<TensorType> types, Fill fill) {
    var name = "x" + inputs.getFirst().size();
    var made = new ArrayList<Value>();
    for (int v = 0; v < versions; v++) {
      var value = new Value(nextId++, name, types.get(v), Span.NONE, true);
      inputs.get(v).add(value);
      made.add(value);
    }
    if (fill.kind() != Fill.Kind.ANY) {
      fills.put(name, fill);
      fixed.add(made.getFirst().id());
    } else {
      pool.add(made.getFirst());
    }
    made.forEach(value -> storages.put(value.id(), made.getFirst().id()));
    twins.put(made.getFirst().id(), made);
    return made.getFirst();
  }

  /** A new input, in rows or otherwise. */
  Value input(DType dtype, long[] sizes, Fill fill) {
    var type = TensorType.contiguous(dtype, sizes);
    if (sizes.length > 1 && chance(25)) {
      type = type.withStrides(permuted(sizes, order(sizes.length)));
    } else if (sizes.length > 0 && chance(8)) {
      var strides = type.strides().toArray();
      Arrays.setAll(strides, i -> strides[i] * 2);
      type = type.withStrides(ImmutableLongArray.copyOf(strides));
    }
    if (chance(6)) {
      type = type.withSpace(pick(MemorySpace.choices()));
    } else if (chance(10)) {
      type = type.withSpace(MemorySpace.DONATED);
    }
    return input(type, fill);
  }

  private static ImmutableLongArray permuted(long[] sizes, int[] order) {
    var strides = new long[sizes.length];
    long next = 1;
    for (int dim : order) {
      strides[dim] = next;
      next *= Math.max(1, sizes[dim]);
    }
    return ImmutableLongArray.copyOf(strides);
  }

  int[] order(int count) {
    var order = new int[count];
    Arrays.setAll(order, i -> i);
    for (int i = count - 1; i > 0; i--) {
      int other = random.nextInt(i + 1);
      int dim = order[i];
      order[i] = order[other];
      order[other] = dim;
    }
    return order;
  }

  // Choice of tensors.

  /** A tensor that is there, likely a recent one. */
  Optional<Value> find(Predicate<? super TensorType> wanted) {
    var matching = pool.stream().filter(v -> wanted.test(v.tensor())).toList();
    if (chance(60)) {
      var computed = matching.stream().filter(v -> !inputs.getFirst().contains(v)).toList();
      matching = computed.isEmpty() ? matching : computed;
    }
    if (matching.isEmpty()) {
      return Optional.empty();
    }
    int back = Math.min(random.nextInt(matching.size()), random.nextInt(matching.size()));
    return Optional.of(matching.get(matching.size() - 1 - back));
  }

  Value any() {
    return (chance(85) ? find(_ -> true) : Optional.<Value>empty())
        .orElseGet(() -> fresh(dtype(), shape()));
  }

  /** A tensor of this type, or an input for it. */
  Value tensor(DType dtype, long... sizes) {
    var wanted = ImmutableLongArray.copyOf(sizes);
    return (chance(85)
            ? find(t -> t.dtype() == dtype && t.sizes().equals(wanted))
            : Optional.<Value>empty())
        .orElseGet(() -> fresh(dtype, sizes));
  }

  /** An input, or what an op makes of one. */
  private Value fresh(DType dtype, long... sizes) {
    var input = input(dtype, sizes, Fill.ANY);
    if (!chance(40) || dtype == DType.BOOL || dtype.kind() == DType.Kind.COMPLEX) {
      return input;
    }
    return apply(op("aten::relu"), ImmutableList.of(new Arg.Ref(input)), true)
        .map(ImmutableList::getFirst)
        .orElse(input);
  }

  Value tensor(DType dtype, ImmutableLongArray sizes) {
    return tensor(dtype, sizes.toArray());
  }

  Value like(Value value) {
    return tensor(value.tensor().dtype(), value.tensor().sizes());
  }

  /** The same memory seen in another way, or in the same. */
  Value sharing(Value value) {
    var type = value.tensor();
    if (chance(50) && type.rank() == 2 && type.size(0) == type.size(1)) {
      return must("aten::t", new Arg.Ref(value));
    }
    var storage = storages.get(value.id());
    var same =
        pool.stream()
            .filter(
                v ->
                    storages.get(v.id()).equals(storage) && v.tensor().sizes().equals(type.sizes()))
            .toList();
    return same.isEmpty() ? value : pick(same);
  }

  /** A tensor that a collective may send: of one type on all ranks. */
  Optional<Value> uniform(Predicate<? super TensorType> wanted) {
    for (int attempt = 0; attempt < 4; attempt++) {
      var found = find(wanted);
      if (found.isPresent() && isUniform(found.get())) {
        return found;
      }
    }
    return Optional.empty();
  }

  boolean isUniform(Value value) {
    return twins.get(value.id()).stream().allMatch(v -> v.type().equals(value.type()));
  }

  List<Value> twins(Value value) {
    return List.copyOf(twins.get(value.id()));
  }

  /** Whether there is memory around it that no op wrote. */
  boolean isAmongGaps(Value value) {
    return gaps.contains(storages.get(value.id()));
  }

  /** Whether an op may write to it: no index lives there, and no element is there twice. */
  boolean isWritable(Value value) {
    return !fixed.contains(storages.get(value.id())) && hasNoOverlap(value.tensor());
  }

  Optional<Value> writable(Predicate<? super TensorType> wanted) {
    for (int attempt = 0; attempt < 4; attempt++) {
      var found = find(wanted);
      if (found.isPresent() && isWritable(found.get())) {
        return found;
      }
    }
    return Optional.empty();
  }

  /** Strides that fit the first version's sizes need not fit those of another. */
  private static boolean isOverlapping(OpResult result, TensorType type) {
    return result.view().isEmpty() && !hasNoOverlap(type);
  }

  static boolean hasNoOverlap(TensorType type) {
    var dims = new ArrayList<Integer>();
    for (int i = 0; i < type.rank(); i++) {
      if (type.size(i) > 1) {
        dims.add(i);
      }
    }
    dims.sort((a, b) -> Long.compare(type.stride(a), type.stride(b)));
    long reach = 0;
    for (int dim : dims) {
      if (type.stride(dim) <= reach) {
        return false;
      }
      reach += (type.size(dim) - 1) * type.stride(dim);
    }
    return true;
  }

  // Ops.

  static OpDef op(String name) {
    return BuiltinOps.registry().get(name);
  }

  /** A step that cannot be finished; what is there of it stays. */
  static final class Refused extends RuntimeException {
    private static final long serialVersionUID = 1L;
  }

  Value must(String name, Arg... args) {
    return apply(op(name), ImmutableList.copyOf(args), true).orElseThrow(Refused::new).getFirst();
  }

  Optional<ImmutableList<Value>> apply(OpDef def, ImmutableList<Arg> args, boolean keep) {
    return apply(def, Collections.nCopies(versions, args), keep);
  }

  /**
   * Adds an op, if its rule accepts it in all versions.
   *
   * @param argsOf the arguments in each version, which may differ in all but values
   * @param keep whether the results may be used by whoever comes
   */
  Optional<ImmutableList<Value>> apply(OpDef def, List<ImmutableList<Arg>> argsOf, boolean keep) {
    var inferred = new ArrayList<ImmutableList<OpResult>>();
    var translated = new ArrayList<ImmutableList<Arg>>();
    for (int v = 0; v < versions; v++) {
      int version = v;
      var args =
          argsOf.get(v).stream()
              .map(arg -> translate(arg, version))
              .collect(ImmutableList.toImmutableList());
      @Nullable ImmutableList<OpResult> results = infer(def, args);
      if (results == null) {
        return Optional.empty();
      }
      translated.add(args);
      inferred.add(results);
    }
    for (int v = 0; v < versions; v++) {
      if (isRefused(v, def, translated.get(v), inferred.get(v))) {
        return Optional.empty();
      }
    }
    int count = inferred.getFirst().size();
    if (inferred.stream().anyMatch(results -> !kinds(results).equals(kinds(inferred.getFirst())))) {
      return Optional.empty();
    }
    boolean elsewhere = chance(6) && layElsewhere(def, inferred);
    var results = new ArrayList<List<Value>>();
    var names = new ArrayList<String>();
    for (int i = 0; i < count; i++) {
      boolean nothing = inferred.getFirst().get(i).type() instanceof NoneType;
      names.add(nothing ? "" : "v" + nextName++);
    }
    for (int v = 0; v < versions; v++) {
      var own = new ArrayList<Value>();
      for (int i = 0; i < count; i++) {
        var type = inferred.get(v).get(i).type();
        own.add(new Value(nextId++, names.get(i), type, Span.NONE, elsewhere));
      }
      results.add(own);
      ops.get(v)
          .add(new Op(def, translated.get(v), ImmutableList.copyOf(own), Span.NONE, Notes.NONE));
    }
    argsOf.getFirst().forEach(arg -> arg.operands().forEach(value -> read.add(value.id())));
    var made = ImmutableList.<Value>builder();
    for (int i = 0; i < count; i++) {
      int index = i;
      var value = results.getFirst().get(i);
      made.add(value);
      twins.put(value.id(), new ArrayList<>(results.stream().map(r -> r.get(index)).toList()));
      if (value.isTensor()) {
        var view = inferred.getFirst().get(i).view();
        storages.put(value.id(), view.map(of -> storages.get(of.of().id())).orElse(value.id()));
        if (view.isEmpty() && !value.tensor().isDense()) {
          gaps.add(value.id());
        }
        if (keep && !fixed.contains(storages.get(value.id()))) {
          pool.add(value);
        }
      }
    }
    return Optional.of(made.build());
  }

  /** Whether the compiler refuses an op, as it writes over what it reads. */
  private boolean isRefused(
      int version, OpDef def, ImmutableList<Arg> args, ImmutableList<OpResult> inferred) {
    if (!def.schema().mutates()) {
      return false;
    }
    var results = new ArrayList<Value>();
    for (var result : inferred) {
      results.add(new Value(nextId + results.size(), "", result.type(), Span.NONE, false));
    }
    var all = new ArrayList<>(ops.get(version));
    all.add(new Op(def, args, ImmutableList.copyOf(results), Span.NONE, Notes.NONE));
    var graph = Rebuild.graph(ImmutableIntArray.of(), inputs.get(version), all, List.of());
    return OverlappingWrites.find(Aliases.of(graph), graph.ops().getLast()).isPresent();
  }

  /**
   * Gives the results of an op other strides than the op would: annotations may. Collectives only
   * write without gaps, and some of them only row by row.
   *
   * @param results by version
   * @return whether it could
   */
  private boolean layElsewhere(OpDef def, List<ImmutableList<OpResult>> results) {
    var kind = def.collective().map(CollectiveSpec::kind);
    boolean can = kind.isEmpty() || (kind.get().keepsLayout() && !def.schema().mutates());
    boolean plain =
        results.stream()
            .flatMap(List::stream)
            .allMatch(one -> one.view().isEmpty() && one.type() instanceof TensorType);
    if (!can || !plain) {
      return false;
    }
    int gap = kind.isEmpty() && chance(25) ? 2 : 1;
    for (int i = 0; i < results.getFirst().size(); i++) {
      var order = order(((TensorType) results.getFirst().get(i).type()).rank());
      for (int v = 0; v < versions; v++) {
        var all = new ArrayList<>(results.get(v));
        var type = (TensorType) all.get(i).type();
        var space = type.space() == MemorySpace.HOST ? type.space() : MemorySpace.ANY;
        var strides = permuted(type.sizes().toArray(), order).toArray();
        Arrays.setAll(strides, dim -> strides[dim] * gap);
        all.set(
            i,
            all.get(i)
                .withType(type.withSpace(space).withStrides(ImmutableLongArray.copyOf(strides))));
        results.set(v, ImmutableList.copyOf(all));
      }
    }
    return true;
  }

  /** Whether the ranks' outputs are the same. */
  private static List<String> kinds(List<OpResult> results) {
    return results.stream()
        .map(
            result ->
                result.type() instanceof TensorType type
                    ? type.dtype() + " " + type.rank()
                    : result.type().toString())
        .toList();
  }

  private @Nullable ImmutableList<OpResult> infer(OpDef def, ImmutableList<Arg> args) {
    try {
      var results = def.infer(args).orElseThrow();
      long room = roomy ? ROOM : 1;
      for (var result : results) {
        if (result.type() instanceof TensorType type
            && (isOverlapping(result, type)
                || type.numel() > room * MAX_ELEMENTS
                || type.storageBytes() > room * MAX_BYTES)) {
          return null;
        }
      }
      return results;
    } catch (OpTypeException | IllegalArgumentException | ArithmeticException e) {
      return null;
    }
  }

  Arg translate(Arg arg, int version) {
    return switch (arg) {
      case Arg.Ref(Value value) when twins.containsKey(value.id()) ->
          new Arg.Ref(twins.get(value.id()).get(version));
      case Arg.Seq(ImmutableList<Arg> items) ->
          new Arg.Seq(
              items.stream()
                  .map(item -> translate(item, version))
                  .collect(ImmutableList.toImmutableList()));
      default -> arg;
    };
  }

  /** Lets one version do something more to a value than the others. */
  void vary() {
    int version = random.nextInt(versions);
    if (pool.isEmpty()) {
      return;
    }
    var value = pick(pool);
    var own = twins.get(value.id()).get(version);
    if (value.tensor().dtype() == DType.BOOL) {
      return;
    }
    var def = op(pick("aten::neg", "aten::clone", "aten::positive", "aten::alias"));
    var args = ImmutableList.<Arg>builder().add(new Arg.Ref(own));
    if (def.schema().params().size() > 1) {
      args.add(Arg.None.NONE);
    }
    @Nullable ImmutableList<OpResult> results = infer(def, args.build());
    if (results == null || !results.getFirst().type().equals(own.type())) {
      return;
    }
    var made = new Value(nextId++, "w" + nextName++, own.type(), Span.NONE, false);
    ops.get(version).add(new Op(def, args.build(), ImmutableList.of(made), Span.NONE, Notes.NONE));
    twins.get(value.id()).set(version, made);
  }

  // The end.

  /** Values that nothing reads are outputs, but for a few; so are some others. */
  private List<Value> outputs() {
    var outputs = new ArrayList<Value>();
    for (var value : pool) {
      if (chance(read.contains(value.id()) ? 12 : 92)) {
        outputs.add(value);
      }
    }
    if (outputs.isEmpty()) {
      outputs.add(pool.isEmpty() ? input(DType.F32, shape(), Fill.ANY) : pool.getLast());
    }
    if (chance(5)) {
      outputs.add(outputs.getFirst());
    }
    return outputs;
  }

  List<Graph> graphs(List<ImmutableIntArray> ranks) {
    var outputs = outputs();
    var graphs = new ArrayList<Graph>();
    int nothing = chance(8) ? random.nextInt(outputs.size() + 1) : -1;
    for (int v = 0; v < versions; v++) {
      int version = v;
      var given = new ArrayList<Arg>();
      outputs.forEach(value -> given.add(new Arg.Ref(twins.get(value.id()).get(version))));
      if (nothing >= 0) {
        given.add(nothing, nothing % 2 == 0 ? Arg.None.NONE : new Arg.Int(3));
      }
      graphs.add(Rebuild.graph(ranks.get(v), inputs.get(v), ops.get(v), given));
    }
    return graphs;
  }
}
