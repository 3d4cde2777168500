package dev.symplan.planner.pass.order;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.analysis.Precedence;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;

/**
 * Finds what is computed again so that its memory is free at the peak. This is PyTorch's activation
 * checkpointing, and XLA's rematerialization, tensor by tensor.
 *
 * <p>An op runs again with the operands of its first run. Each of them is still live then, or is
 * itself computed again, so that nothing lives longer for it. A gather may run again, which frees a
 * whole while only its shards wait: FSDP's resharding after forward. Other collectives, whose sums
 * another variant would round otherwise, ops with effects, ops that draw random numbers, copies to
 * the host's memory and ops without a rule never run twice, and nothing is computed again from what
 * is written in between.
 */
final class Recomputation {
  /** The most ops that run again for one tensor. */
  private static final int MAX_OPS = 16;

  /** An op runs again as it is. */
  private static final int WHOLE = -1;

  /**
   * A storage that could be computed again.
   *
   * @param at the op before which it is
   * @param ops the ops that run again, and views of it
   * @param leaves storages that these read and that are live there anyway
   */
  record Again(
      Aliases.Storage storage,
      int at,
      BitSet ops,
      BitSet leaves,
      double micros,
      PeakReduction.Recomputed made)
      implements Saving {
    @Override
    public Again atLeast(double least) {
      return new Again(storage, at, ops, leaves, Math.max(micros, least), made);
    }
  }

  private final PeakView view;
  private final ImmutableList<Op> ops;
  private final Aliases aliases;
  private final CostModel costs;
  private final PeakReduction.Gathers gathers;

  Recomputation(PeakView view, CostModel costs, PeakReduction.Gathers gathers) {
    this.view = view;
    this.ops = view.ops;
    this.aliases = view.aliases;
    this.costs = costs;
    this.gathers = gathers;
  }

  /** {@return how a storage that waits can be computed again} */
  Optional<Again> of(PeakView.Waiting waiting) {
    // Without a reader before the peak, it would be moved, not computed again.
    return waiting.read()
        ? new Search(waiting.storage(), waiting.next()).candidate()
        : Optional.empty();
  }

  /** The search for the ops that compute one storage again. */
  private final class Search {
    private final Aliases.Storage storage;
    private final int at;
    private final BitSet again = new BitSet();
    private final BitSet leaves = new BitSet();

    Search(Aliases.Storage storage, int at) {
      this.storage = storage;
      this.at = at;
    }

    Optional<Again> candidate() {
      if (!repeat(storage.def())) {
        return Optional.empty();
      }
      for (var op : ops.subList(at, ops.size())) {
        for (var operand : op.operands()) {
          int maker = view.maker(operand);
          if (aliases.id(operand) == storage.id() && maker < at && !repeat(maker)) {
            return Optional.empty();
          }
        }
      }
      return isWritten(at, again) ? Optional.empty() : Optional.of(found());
    }

    private Again found() {
      double micros = micros(again, storage);
      var made =
          new PeakReduction.Recomputed(
              storage.value(),
              storage.bytes(),
              (int) again.stream().filter(aliases::runs).count(),
              (int) again.stream().filter(op -> ops.get(op).collective().isPresent()).count(),
              ops.get(at).label(),
              micros);
      return new Again(storage, at, again, leaves, micros, made);
    }

    /** Notes that an op runs again, after those that it needs; false if one of them must not. */
    private boolean repeat(int index) {
      if (again.get(index)) {
        return true;
      }
      var op = ops.get(index);
      if (!isRepeatable(op, storage) || again.cardinality() == MAX_OPS) {
        return false;
      }
      again.set(index);
      int part = part(op, storage);
      var operands = part == WHOLE ? op.operands() : op.operands().subList(part, part + 1);
      return operands.stream().allMatch(this::isReady);
    }

    private boolean isReady(Value operand) {
      int id = aliases.id(operand);
      int maker = view.maker(operand);
      if (id < 0 || maker >= 0 && again.get(maker)) {
        return true;
      }
      if (id != storage.id() && view.isLiveAt(id, at)) {
        leaves.set(id);
        return true;
      }
      return maker >= 0 && aliases.families().isAlone(id) && repeat(maker);
    }
  }

  private boolean isRepeatable(Op op, Aliases.Storage storage) {
    return op.def().rule().isPresent()
        && !Precedence.hasEffect(op)
        && !op.def().isFence()
        && (!op.def().has(OpTrait.HOST_COPY) || isLoad(op))
        && (op.collective().isEmpty() || gatherMicros(op, storage).isPresent());
  }

  /** Whether a tensor can be brought in again from the host's memory. */
  private static boolean isLoad(Op op) {
    return op.def().has(OpTrait.HOST_COPY) && !PeakView.isInHost(op.result());
  }

  /** A gather of several tensors runs again for the one that it is to give, and only for that. */
  private OptionalDouble gatherMicros(Op op, Aliases.Storage storage) {
    int part = part(op, storage);
    return part == WHOLE && op.results().size() > 1
        ? OptionalDouble.empty()
        : gathers.micros(op, Math.max(0, part));
  }

  /** {@return which of the tensors that a collective gives together a storage is, or WHOLE} */
  private int part(Op op, Aliases.Storage storage) {
    if (op.collective().isPresent() && op.results().size() > 1) {
      for (int k = 0; k < op.results().size(); k++) {
        if (aliases.id(op.results().get(k)) == storage.id()) {
          return k;
        }
      }
    }
    return WHOLE;
  }

  /** Whether anything that the ops read may be written between their first run and the second. */
  private boolean isWritten(int at, BitSet again) {
    int first = again.nextSetBit(0);
    var read = new HashSet<Integer>();
    again.stream()
        .mapToObj(ops::get)
        .forEach(
            op -> {
              op.operands().forEach(operand -> read.add(aliases.family(operand)));
              op.results().forEach(result -> read.add(aliases.family(result)));
            });
    for (int writer : view.writers()) {
      if (writer < first) {
        continue;
      }
      var op = ops.get(writer);
      if (writer < at && op.def().isUnbounded()) {
        return true;
      }
      for (var values : List.of(op.written(), op.moved())) {
        for (var value : values) {
          if (read.contains(aliases.family(value))) {
            return true;
          }
        }
      }
    }
    return false;
  }

  private double micros(BitSet again, Aliases.Storage storage) {
    return again.stream()
        .filter(aliases::runs)
        .mapToObj(ops::get)
        .mapToDouble(
            op ->
                isLoad(op)
                    ? costs.hostCopyMicros(op.result().tensor()) + costs.forkJoinMicros()
                    : op.collective().isPresent()
                        ? gatherMicros(op, storage).orElseThrow()
                        : costs.computeMicros(op))
        .sum();
  }

  /** Computes a storage again at the end of what was copied so far. */
  void insert(Again one, GraphCopier copier) {
    one.ops().stream().forEach(index -> insert(copier, index, one));
  }

  private void insert(GraphCopier copier, int index, Again one) {
    var op = ops.get(index);
    int part = part(op, one.storage());
    var given = part == WHOLE ? op.results() : op.results().subList(part, part + 1);
    var results =
        isLoad(op)
            ? ImmutableList.of(
                Offloading.load(
                    copier, op.def(), copier.now(op.operands().getFirst()), op.result()))
            : copier.insert(
                op.def(),
                copier.now(part == WHOLE ? op.args() : only(part, op.args())),
                op.label() + "_again",
                given.stream().map(Value::type).toList(),
                op.span());
    for (int r = 0; r < results.size(); r++) {
      int storage = aliases.id(given.get(r));
      // Tensors that are still live are read in place.
      if (storage >= 0 && (storage == one.storage().id() || !view.isLiveAt(storage, one.at()))) {
        copier.replace(given.get(r), results.get(r));
      }
    }
  }

  /** {@return the arguments with one of the tensors in lists} */
  private static ImmutableList<Arg> only(int part, ImmutableList<Arg> args) {
    return args.stream()
        .map(
            arg ->
                arg instanceof Arg.Seq(var items) && !arg.operands().isEmpty()
                    ? new Arg.Seq(items.subList(part, part + 1))
                    : arg)
        .collect(ImmutableList.toImmutableList());
  }
}
