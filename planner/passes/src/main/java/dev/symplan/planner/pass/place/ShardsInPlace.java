package dev.symplan.planner.pass.place;

import com.google.common.base.Suppliers;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSetMultimap;
import com.google.common.collect.Iterables;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.CollectiveCall;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.SliceDims;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.select.Realized;
import dev.symplan.planner.plan.Step;
import java.util.function.Supplier;

/**
 * The shares of ranks that can lie in the whole: what a rank brings to an all_gather in its part of
 * the result, what it gets from a reduce_scatter in its part of the operand. NCCL calls both in
 * place. What is gathered along a later dimension is rows between those of other ranks, which only
 * some ops can write.
 */
final class ShardsInPlace {

  /**
   * One of them, and the collective, by its number.
   *
   * @param stride the bytes of the part, or of one of its rows
   */
  private record Share(int collective, int part, int whole, long stride, boolean brief) {}

  private final Realized graph;
  private final Schedule schedule;
  private final Liveness life;
  private final Supplier<ImmutableSetMultimap<Integer, Integer>> users =
      Suppliers.memoize(this::users);
  private final ImmutableList<Share> found;

  ShardsInPlace(Realized graph, Schedule schedule, Liveness life, PassContext context) {
    this.graph = graph;
    this.schedule = schedule;
    this.life = life;
    var shares = ImmutableList.<Share>builder();
    for (int k = 0; k < graph.collectives().size(); k++) {
      var collective = graph.collectives().get(k);
      if (graph.spec(k).allowsShardInPlace()) {
        add(shares, k, collective, context.groupSize(collective.group()));
      }
    }
    this.found = shares.build();
  }

  private void add(ImmutableList.Builder<Share> shares, int k, Collective collective, int ranks) {
    boolean gathers = collective.kind() == Kind.ALL_GATHER;
    for (int i = 0; i < collective.operands().size(); i++) {
      var operand = collective.operands().get(i);
      var result = collective.results().get(i);
      var part = gathers ? operand : result;
      var whole = gathers ? result : operand;
      // Another operand in the same memory is still read when this one's result is written.
      if (collective.operands().stream().filter(other -> id(other) == id(operand)).count() == 1
          && graph.aliases().isWhole(operand)
          && life.diesIn(operand, schedule.startStep().get(k))
          && canLieIn(part, whole, ranks)) {
        long stride = stride(collective, part, whole);
        if (stride == part.tensor().bytes()
            || (gathers
                && stride % Alignment.VECTOR == 0
                && isWrittenInRows(id(part), collective, stride))) {
          shares.add(new Share(k, id(part), id(whole), stride, isBrief(k, gathers, id(part))));
        }
      }
    }
  }

  private int id(Value value) {
    return graph.aliases().id(value);
  }

  private boolean canLieIn(Value part, Value whole, int ranks) {
    long bytes = part.tensor().storageBytes();
    return bytes > 0
        && bytes % Alignment.VECTOR == 0
        && whole.tensor().storageBytes() == ranks * bytes
        && part.tensor().isContiguous()
        && whole.tensor().isContiguous()
        && !graph.isGiven(id(part))
        && !graph.arena(id(part)).isExternal()
        && !graph.arena(id(whole)).isExternal();
  }

  /** {@return the bytes of the part that lie side by side in the whole} */
  private static long stride(Collective collective, Value part, Value whole) {
    boolean gathers = collective.kind() == Kind.ALL_GATHER;
    return collective
        .op()
        .collective()
        .map(CollectiveCall::sliceDims)
        .map(dims -> gathers ? dims.result() : dims.operand())
        .map(dim -> part.tensor().bytes() / SliceDims.rows(whole.tensor(), dim))
        .orElse(part.tensor().bytes());
  }

  /**
   * Whether an op can write a part in rows, and nothing but the collective reads it, so that no
   * other op meets rows that are apart.
   */
  private boolean isWrittenInRows(int part, Collective collective, long row) {
    var storage = graph.aliases().storage(part);
    return canWriteRows(storage)
        && schedule.steps().get(schedule.stepOfOp().get(storage.def())) instanceof Step.Compute
        && users.get().get(part).stream()
            .allMatch(op -> op == storage.def() || op == collective.index() || isRows(op, row));
  }

  private boolean canWriteRows(Aliases.Storage storage) {
    return !storage.isInput()
        && graph.graph().ops().get(storage.def()).def().has(OpTrait.ROWS_APART);
  }

  /** Whether an op only gives its operand another shape, in which the rows are still rows. */
  private boolean isRows(int op, long row) {
    return graph.aliases().isView(op)
        && graph.graph().ops().get(op).results().stream()
            .allMatch(
                view ->
                    graph.aliases().isWhole(view)
                        && view.tensor().isOfRows(row / view.tensor().dtype().bytes()));
  }

  /** By storage that an op can write in rows, all ops that have to do with it. */
  private ImmutableSetMultimap<Integer, Integer> users() {
    var ops = graph.graph().ops();
    var found = ImmutableSetMultimap.<Integer, Integer>builder();
    for (int i = 0; i < ops.size(); i++) {
      for (var value : Iterables.concat(ops.get(i).operands(), ops.get(i).results())) {
        if (value.isTensor() && canWriteRows(graph.aliases().of(value))) {
          found.put(id(value), i);
        }
      }
    }
    return found.build();
  }

  /** Whether no step lies between the collective and the other end of the part's life. */
  private boolean isBrief(int k, boolean gathers, int part) {
    return gathers
        ? life.first(part) >= schedule.startStep().get(k) - 1
        : life.last(part) <= schedule.endStep().get(k) + 1;
  }

  boolean isEmpty() {
    return found.isEmpty();
  }

  /**
   * Joins them.
   *
   * @param all those too whose whole has to live for several steps more
   * @return whether there is any
   */
  boolean join(boolean all, StorageMerges merges) {
    boolean any = false;
    for (var share : found) {
      // A shard that peers need at the same offset everywhere, or that lies elsewhere, stays there.
      if ((all || share.brief())
          && !merges.isSymmetric(share.part())
          && !merges.isJoined(share.part())
          && !merges.isShard(share.whole())
          && !merges.isInRows(share.whole())) {
        merges.joinShard(share.part(), share.whole(), share.collective(), share.stride());
        any = true;
      }
    }
    return any;
  }
}
