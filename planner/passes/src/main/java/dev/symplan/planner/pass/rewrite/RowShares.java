package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Sets;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Rows;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.plan.Rewrite.Reason;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The ops of one graph that can run on a share of the rows, if some all_reduces become
 * reduce_scatters: those that compute each row of their results from that row of their operands.
 * Tensors that other ops read must be gathered.
 *
 * <p>{@link ShareTypes} says what a share is.
 */
final class RowShares extends GraphSearch {

  /**
   * A tensor of which each rank has a share.
   *
   * @param value the share: the tensor's name and id, with another size along {@code dim}
   * @param reduced the last all_reduce that it depends on
   * @param part the number of borders before the op that makes it
   */
  record Share(Value value, int dim, String group, int reduced, int part) {}

  /** Why an all_reduce cannot become a reduce_scatter. */
  record Refusal(Reason reason, String detail) {}

  /**
   * An op on shares.
   *
   * @param cut the operands that all ranks have whole, and of which the op reads a share along a
   *     dimension
   * @param results the shares that it makes, each in the place of a result
   */
  record Shared(ImmutableMap<Value, Integer> cut, ImmutableList<Share> results) {}

  private final Analyses own;
  private final PassContext context;
  private final Set<Integer> candidates;

  /** By value. */
  private final @Nullable Share[] shares;

  /** By op. */
  private final @Nullable Shared[] shared;

  /** By value, what a view of a share shows. */
  private final Map<Integer, Value> shown = new HashMap<>();

  /** The values, views left out, that must be gathered. */
  private final BitSet whole = new BitSet();

  private final Map<Integer, Long> gatheredBytes = new HashMap<>();

  /** By all_reduce, another one of the same chain: its own number for the first of a chain. */
  private final Map<Integer, Integer> chains = new HashMap<>();

  /** By all_reduce, the last op on shares that depends on it and on no later one. */
  private final Map<Integer, Integer> last = new HashMap<>();

  /** By all_reduce, what an op behind it reads that may differ from rank to rank. */
  private final Map<Integer, Value> differing = new HashMap<>();

  private final Map<String, ReplicatedValues> replicated = new HashMap<>();
  private final BitSet written;
  private int part;

  private RowShares(Analyses own, PassContext context, Set<Integer> candidates) {
    super(own);
    this.own = own;
    this.context = context;
    this.candidates = candidates;
    this.shares = new @Nullable Share[graph.valueCount()];
    this.shared = new @Nullable Shared[ops.size()];
    this.written = written();
    candidates.forEach(k -> chains.put(k, k));
    int k = 0;
    for (int i = 0; i < ops.size(); i++) {
      boolean collective = k < own.collectives().size() && own.collectives().get(k).index() == i;
      visit(i, collective && candidates.contains(k) ? k : -1);
      k += collective ? 1 : 0;
    }
    graph.outputValues().forEach(this::need);
  }

  /**
   * {@return what can run on shares if no other than these all_reduces become reduce_scatters}
   *
   * @param refused is told why some cannot
   */
  static RowShares of(
      Analyses own, PassContext context, Set<Integer> candidates, Map<Integer, Refusal> refused) {
    var remaining = candidates;
    while (true) {
      var found = new RowShares(own, context, remaining);
      var refusals = found.refusals();
      if (refusals.isEmpty()) {
        return found;
      }
      refusals.forEach(refused::putIfAbsent);
      remaining = Sets.difference(remaining, refusals.keySet()).immutableCopy();
    }
  }

  private BitSet written() {
    var storages = new BitSet();
    for (var op : ops) {
      for (var value : op.operands()) {
        if (mayWrite(op, value) && aliases.id(value) >= 0) {
          storages.set(aliases.id(value));
        }
      }
    }
    return storages;
  }

  private void visit(int index, int reduced) {
    var op = ops.get(index);
    if (reduced >= 0) {
      op.operands().forEach(this::need);
      var collective = own.collectives().get(reduced);
      var result = op.result();
      int ranks = context.groupSize(collective.group());
      int dim = ShareTypes.dim(result.tensor().sizes());
      var type = ShareTypes.of(result.tensor(), dim, ranks);
      shares[result.id()] = share(result, type, dim, collective.group(), reduced);
      return;
    }
    if (op.def().has(OpTrait.BORDER)) {
      part++;
    }
    var lead = op.operands().stream().filter(value -> shares[value.id()] != null).findFirst();
    if (lead.isEmpty()) {
      return;
    }
    var source = Objects.requireNonNull(shares[lead.get().id()]);
    var joined =
        source.part() == part ? join(op, index, lead.get(), source) : Optional.<Shared>empty();
    if (joined.isPresent()) {
      shared[index] = joined.get();
      joined.get().results().forEach(made -> shares[made.value().id()] = made);
      last.put(joined.get().results().getFirst().reduced(), index);
      return;
    }
    op.operands().forEach(this::need);
  }

  private static boolean mayWrite(Op op, Value operand) {
    return op.def().rule().isEmpty() || op.written().contains(operand);
  }

  private Share share(Value of, TensorType type, int dim, String group, int reduced) {
    var value = new Value(of.id(), of.name(), type, of.span(), of.annotated());
    return new Share(value, dim, group, reduced, part);
  }

  /** Notes that all of a tensor is read. */
  private void need(Value value) {
    var tensor = value;
    while (shown.get(tensor.id()) instanceof Value base) {
      tensor = base;
    }
    if (shares[tensor.id()] instanceof Share made && !whole.get(tensor.id())) {
      whole.set(tensor.id());
      gatheredBytes.merge(made.reduced(), tensor.tensor().bytes(), Long::sum);
    }
  }

  /** The all_reduces whose shares an op may write over, be it through another view of the whole. */
  private Set<Integer> overwritten() {
    var overwritten = new HashSet<Integer>();
    for (var share : shares) {
      if (share != null && written.get(aliases.id(share.value()))) {
        overwritten.add(share.reduced());
      }
    }
    return overwritten;
  }

  /** The all_reduces for which more would be gathered than they reduce, and others. */
  private Map<Integer, Refusal> refusals() {
    var refusals = new LinkedHashMap<Integer, Refusal>();
    var overwritten = overwritten();
    var gathered = new BitSet();
    whole.stream().forEach(id -> gathered.set(storageOfShare(id)));
    for (int k : candidates) {
      var collective = own.collectives().get(k);
      boolean tooMuch = gatheredBytes.getOrDefault(k, 0L) > collective.bytes();
      if (overwritten.contains(k)) {
        refusals.put(k, new Refusal(Reason.NEEDED_WHOLE, "an op may write over what it gives"));
      } else if (tooMuch || gathered.get(aliases.id(collective.op().result()))) {
        refusals.put(k, refusal(k));
      }
    }
    return refusals;
  }

  private Refusal refusal(int k) {
    return differing.get(k) instanceof Value other
        ? new Refusal(Reason.MAY_DIFFER, "%s may differ from rank to rank".formatted(other.name()))
        : new Refusal(Reason.NEEDED_WHOLE, "more than it reduces is read whole");
  }

  private boolean isReplicated(Value value, String group) {
    return replicated
        .computeIfAbsent(
            group,
            name ->
                ReplicatedValues.of(graph, aliases, written, context.options().replicated(), name))
        .contains(value);
  }

  private int storageOfShare(int value) {
    return aliases.id(Objects.requireNonNull(shares[value]).value());
  }

  private Optional<Shared> join(Op op, int index, Value lead, Share source) {
    if (op.def().has(OpTrait.WAIT)) {
      return Optional.of(
          new Shared(ImmutableMap.of(), ImmutableList.of(like(op.result(), source))));
    }
    if (op.def().rule().isEmpty() || op.results().stream().anyMatch(made -> !isPlain(made))) {
      return Optional.empty();
    }
    return aliases.isView(index) ? view(op, lead, source) : rowwise(op, lead, source);
  }

  private Share like(Value result, Share source) {
    return share(result, source.value().tensor(), source.dim(), source.group(), source.reduced());
  }

  private static boolean isPlain(Value value) {
    return value.isTensor()
        && value.tensor().isContiguous()
        && value.tensor().space() == MemorySpace.ANY;
  }

  private Optional<Shared> view(Op op, Value lead, Share source) {
    if (op.results().size() != 1
        || op.infer().getFirst().view().filter(view -> view.of().equals(lead)).isEmpty()) {
      return Optional.empty();
    }
    var type = op.result().tensor();
    int dim = ShareTypes.dim(type.sizes());
    if (type.numel() != lead.tensor().numel()
        || type.dtype() != lead.tensor().dtype()
        || dim == type.rank()
        || type.size(dim) != lead.tensor().size(source.dim())) {
      return Optional.empty();
    }
    shown.put(op.result().id(), lead);
    var made =
        share(
            op.result(),
            ShareTypes.of(type, dim, context.groupSize(source.group())),
            dim,
            source.group(),
            source.reduced());
    return Optional.of(new Shared(ImmutableMap.of(), ImmutableList.of(made)));
  }

  private Optional<Shared> rowwise(Op op, Value lead, Share source) {
    boolean elementwise = op.def().has(OpTrait.ELEMENTWISE) && op.results().size() == 1;
    if (!PureOps.isPure(op) || (!elementwise && rows(op) <= source.dim())) {
      return Optional.empty();
    }
    int rank = op.results().getFirst().tensor().rank();
    int dim = elementwise ? source.dim() + rank - lead.tensor().rank() : source.dim();
    long size = lead.tensor().size(source.dim());
    int ranks = context.groupSize(source.group());
    var cut = new LinkedHashMap<Value, Integer>();
    var values = new HashMap<Value, Value>();
    int reduced = source.reduced();
    for (var operand : op.operands()) {
      if (!operand.isTensor()) {
        if (!isReplicated(operand, source.group())) {
          differing.putIfAbsent(reduced, operand);
          return Optional.empty();
        }
        continue;
      }
      int at = elementwise ? dim - rank + operand.tensor().rank() : dim;
      boolean carries =
          elementwise
              ? at >= 0 && operand.tensor().size(at) == size
              : Rows.carries(op, operand, dim + 1);
      if (shares[operand.id()] instanceof Share made) {
        if (!carries
            || made.dim() != at
            || made.part() != part
            || !made.group().equals(source.group())) {
          return Optional.empty();
        }
        values.put(operand, made.value());
        reduced = Math.max(reduced, made.reduced());
      } else if (!isReplicated(operand, source.group())) {
        differing.putIfAbsent(reduced, operand);
        return Optional.empty();
      } else if (carries) {
        if (!mayBeCut(operand)) {
          return Optional.empty();
        }
        values.put(
            operand, share(operand, ShareTypes.of(operand.tensor(), at, ranks), at, "", 0).value());
        cut.put(operand, at);
      }
    }
    return results(op, values, dim, size, source.group(), reduced)
        .map(
            made -> {
              join(op, made);
              return new Shared(ImmutableMap.copyOf(cut), made);
            });
  }

  /** The number of leading dimensions by whose indices an op computes independently. */
  private static int rows(Op op) {
    var schema = op.def().schema();
    boolean norm = schema.hasParam("normalized_shape") && !schema.hasParam("output_mask");
    return norm
        ? op.call().tensor("input").rank() - op.call().integers("normalized_shape").length()
        : Rows.of(op);
  }

  private boolean mayBeCut(Value operand) {
    int storage = aliases.id(operand);
    return storage >= 0
        && !written.get(storage)
        && aliases.families().isAlone(storage)
        && operand.tensor().isContiguous()
        && operand.tensor().space() != MemorySpace.HOST;
  }

  private Optional<ImmutableList<Share>> results(
      Op op, Map<Value, Value> values, int dim, long size, String group, int reduced) {
    ImmutableList<OpResult> inferred;
    try {
      var args =
          ImmutableList.copyOf(
              op.args().stream().map(arg -> arg.map(v -> values.getOrDefault(v, v))).toList());
      inferred = op.def().infer(args).orElseThrow();
    } catch (OpTypeException e) {
      // An argument, such as a size, is about whole tensors.
      return Optional.empty();
    }
    var made = ImmutableList.<Share>builder();
    for (int r = 0; r < op.results().size(); r++) {
      var result = op.results().get(r);
      var type = result.tensor();
      if (dim >= type.rank() || ShareTypes.dim(type.sizes()) != dim || type.size(dim) != size) {
        return Optional.empty();
      }
      var wanted = ShareTypes.of(type, dim, context.groupSize(group));
      if (!inferred.get(r).type().equals(wanted) || inferred.get(r).view().isPresent()) {
        return Optional.empty();
      }
      made.add(share(result, wanted, dim, group, reduced));
    }
    return Optional.of(made.build());
  }

  /** Notes that the all_reduces of an op's operands are of one chain. */
  private void join(Op op, List<Share> results) {
    int chain = chain(results.getFirst().reduced());
    for (var operand : op.operands()) {
      if (shares[operand.id()] instanceof Share source) {
        chains.put(chain(source.reduced()), chain);
      }
    }
  }

  private int chain(int k) {
    int last = k;
    while (chains.get(last) instanceof Integer next && next != last) {
      last = next;
    }
    return last;
  }

  /** {@return the all_reduces that can become reduce_scatters, in order} */
  ImmutableSet<Integer> reduces() {
    return ImmutableSet.copyOf(candidates);
  }

  /** {@return by all_reduce, the number of those whose ops on shares hang together} */
  ImmutableMap<Integer, Integer> chainOf() {
    return candidates.stream().collect(ImmutableMap.toImmutableMap(k -> k, this::chain));
  }

  /** {@return whether a value is to be gathered} */
  boolean isWhole(Value value) {
    return whole.get(value.id());
  }

  /** {@return the share of a value, if ranks have shares of it} */
  Optional<Share> share(Value value) {
    return Optional.ofNullable(shares[value.id()]);
  }

  /** {@return what an op does on shares, if it is one that does} */
  Optional<Shared> shared(int op) {
    return Optional.ofNullable(shared[op]);
  }

  /** {@return the last op on shares that no later all_reduce comes before; -1 for none} */
  int lastBehind(int reduced) {
    return last.getOrDefault(reduced, -1);
  }

  /** {@return whether a value is there before an op} */
  boolean isMadeBefore(Value value, int op) {
    return flow.maker(value) < op;
  }

  /** {@return what a view of a share shows} */
  Optional<Value> shown(Value view) {
    return Optional.ofNullable(shown.get(view.id()));
  }
}
