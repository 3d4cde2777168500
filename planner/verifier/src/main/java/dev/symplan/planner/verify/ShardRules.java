package dev.symplan.planner.verify;

import com.google.common.collect.Iterables;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.HashMap;
import java.util.Map;

/**
 * {@link Rule#OVERWRITTEN} where a rank's shard lies in the whole: what it brings to an all_gather
 * in its part of the result, what it gets from a reduce_scatter in its part of the operand. No
 * other rank may touch that part, which depends on the variant. No other tensor of the collective
 * may lie in that whole, and it must be exactly that part on every rank. {@link RowRules} checks
 * what is in several rows.
 */
final class ShardRules {
  private final Plan plan;
  private final AliasModel facts;
  private final Findings findings;

  /** By storage, the collective whose whole has rows of other ranks between those of the shard. */
  private final Map<Integer, CollectivePlan> inRows = new HashMap<>();

  private ShardRules(Plan plan, AliasModel facts, Findings findings) {
    this.plan = plan;
    this.facts = facts;
    this.findings = findings;
  }

  static void check(Plan plan, AliasModel facts, Findings findings) {
    var rules = new ShardRules(plan, facts, findings);
    for (int storage = 0; storage < facts.storageCount(); storage++) {
      var value = facts.storage(storage);
      var placement = facts.plan.placements().get(value.id());
      if (placement.exists() && placement.isShard()) {
        rules.check(value, facts.plan.collectives().get(placement.shardOf()));
      }
    }
    if (!rules.inRows.isEmpty()) {
      RowRules.check(facts, rules.inRows, findings);
    }
  }

  private void check(Value share, CollectivePlan collective) {
    boolean gathers = collective.kind() == Kind.ALL_GATHER;
    var shares = gathers ? collective.operands() : collective.results();
    var wholes = gathers ? collective.results() : collective.operands();
    int index = Iterables.indexOf(shares, id -> facts.storageOf(id) == facts.storageOf(share.id()));
    if (index < 0 || !collective.spec().allowsShardInPlace()) {
      wrong(
          share,
          collective,
          index < 0
              ? "has no such shard"
              : "is " + collective.variant().text() + ", whose shards must not overlap");
      return;
    }
    var whole = facts.value(wholes.get(index));
    for (int i = 0; i < wholes.size(); i++) {
      if (i != index && facts.overlap(wholes.get(i), whole.id())) {
        wrong(share, collective, "also has %s there".formatted(facts.value(wholes.get(i)).name()));
      }
    }
    int ranks = plan.group(collective.group()).size();
    long bytes = share.tensor().storageBytes();
    long stride = facts.plan.placements().get(share.id()).stride();
    // The storage may begin as another view of the same bytes.
    var moved = facts.value(shares.get(index)).tensor();
    long rows = rows(collective, whole, gathers);
    if (rows > 1) {
      inRows.put(facts.storageOf(share.id()), collective);
    }
    if (rows == 0
        || bytes % rows != 0
        || stride != bytes / rows
        || moved.storageBytes() != bytes
        || whole.tensor().storageBytes() != ranks * bytes
        || !moved.isContiguous()
        || !whole.tensor().isContiguous()) {
      wrong(
          share,
          collective,
          "has shards of %s, %s apart, in %s"
              .formatted(
                  Units.count(bytes, "byte"),
                  Units.count(stride, "byte"),
                  whole.tensor().storageBytes()));
    }
    var buffer = facts.plan.buffers().get(facts.plan.placements().get(share.id()).buffer());
    if (facts.space(share.id()) != facts.space(whole.id())
        || facts.begin(share.id()) != facts.begin(whole.id())
        || facts.spread(whole.id()) != 0
        || facts.isInRows(whole.id())
        || buffer.arena().isExternal()
        || facts.opOf(share.id()) < 0) {
      wrong(
          share,
          collective,
          "has its whole at %s, but the first shard at %s"
              .formatted(facts.words.address(whole.id()), facts.words.address(share.id())));
    }
  }

  /** The runs of bytes that a shard consists of: what lies in front of the dimension of shards. */
  private long rows(CollectivePlan collective, Value whole, boolean gathers) {
    var call = facts.op(collective.op()).collective().orElseThrow();
    int dim = gathers ? call.sliceDims().result() : call.sliceDims().operand();
    long rows = 1;
    for (int i = 0; i < dim; i++) {
      rows *= whole.tensor().size(i);
    }
    return rows;
  }

  private void wrong(Value share, CollectivePlan collective, String message) {
    findings.add(
        Rule.OVERWRITTEN,
        facts.rank(),
        "the plan puts %s into the whole of %s, which %s"
            .formatted(share.name(), facts.words.text(collective.op()), message));
  }
}
