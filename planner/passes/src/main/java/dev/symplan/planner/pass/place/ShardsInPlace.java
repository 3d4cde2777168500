package dev.symplan.planner.pass.place;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.select.Realized;

/**
 * The shares of ranks that can lie in the whole: what a rank brings to an all_gather in its part of
 * the result, what it gets from a reduce_scatter in its part of the operand. NCCL calls both in
 * place.
 */
final class ShardsInPlace {

  /** One of them, and the collective, by its number. */
  private record Share(int collective, int part, int whole, boolean brief) {}

  private final Realized graph;
  private final Schedule schedule;
  private final Liveness life;
  private final ImmutableList<Share> found;

  ShardsInPlace(Realized graph, Schedule schedule, Liveness life, PassContext context) {
    this.graph = graph;
    this.schedule = schedule;
    this.life = life;
    var shares = ImmutableList.<Share>builder();
    for (int k = 0; k < graph.collectives().size(); k++) {
      var collective = graph.collectives().get(k);
      if (graph.spec(k).allowsShardInPlace() && collective.request().hasRuns()) {
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
        shares.add(new Share(k, id(part), id(whole), isBrief(k, gathers, id(part))));
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
      // What peers need at the same offset everywhere, or lies elsewhere, stays there.
      if ((all || share.brief())
          && !merges.isSymmetric(share.part())
          && !merges.isJoined(share.part())
          && !merges.isShard(share.whole())) {
        merges.joinShard(share.part(), share.whole(), share.collective());
        any = true;
      }
    }
    return any;
  }
}
