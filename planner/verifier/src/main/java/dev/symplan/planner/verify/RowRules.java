package dev.symplan.planner.verify;

import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * {@link Rule#OVERWRITTEN} where a rank's shard lies in the whole in rows, with those of other
 * ranks between them. Graphs do not say so: ops that know nothing of it would read and write the
 * rows of others. So an op that can leave memory between rows makes the shard, in a step of its
 * own, and only an all_gather reads it.
 */
final class RowRules {
  private final AliasModel facts;
  private final Map<Integer, CollectivePlan> shards;
  private final Findings findings;

  private RowRules(AliasModel facts, Map<Integer, CollectivePlan> shards, Findings findings) {
    this.facts = facts;
    this.shards = shards;
    this.findings = findings;
  }

  /**
   * Checks all such shards of a rank.
   *
   * @param shards the collective that gathers a storage
   */
  static void check(AliasModel facts, Map<Integer, CollectivePlan> shards, Findings findings) {
    new RowRules(facts, shards, findings).check();
  }

  private void check() {
    var alone =
        facts.plan.steps().stream()
            .flatMap(step -> step instanceof Step.Compute(int op) ? Stream.of(op) : Stream.of())
            .collect(Collectors.toSet());
    shards.forEach((storage, collective) -> checkMaker(storage, collective, alone));
    for (int i = 0; i < facts.plan.graph().ops().size(); i++) {
      var touched = new HashSet<Integer>();
      var op = facts.op(i);
      Stream.concat(op.operands().stream(), op.results().stream())
          .filter(Value::isTensor)
          .map(value -> facts.storageOf(value.id()))
          .filter(shards::containsKey)
          .forEach(touched::add);
      for (int storage : touched) {
        checkUser(storage, i);
      }
    }
  }

  private void checkMaker(int storage, CollectivePlan collective, Set<Integer> alone) {
    int maker = facts.definedBy(storage);
    if (collective.kind() != Kind.ALL_GATHER
        || maker < 0
        || !facts.op(maker).def().has(OpTrait.ROWS_APART)
        || !alone.contains(maker)
        || row(storage) % Alignment.VECTOR != 0
        || !isOfRows(facts.storage(storage), storage)) {
      wrong(storage, "nothing writes it so");
    }
  }

  private void checkUser(int storage, int op) {
    boolean known =
        op == facts.definedBy(storage)
            || op == shards.get(storage).op()
            || (!facts.needsStep(op) && keepsRows(facts.op(op), storage));
    if (!known) {
      wrong(storage, facts.words.text(op) + " does not know it");
    }
  }

  private boolean keepsRows(Op op, int storage) {
    return op.results().stream()
        .allMatch(view -> facts.storageOf(view.id()) == storage && isOfRows(view, storage));
  }

  private boolean isOfRows(Value value, int storage) {
    var type = value.tensor();
    return facts.offsetInStorage(value.id()) == 0
        && type.bytes() == facts.storage(storage).tensor().bytes()
        && type.isOfRows(row(storage) / type.dtype().bytes());
  }

  private long row(int storage) {
    return facts.plan.placements().get(facts.storage(storage).id()).stride();
  }

  private void wrong(int storage, String why) {
    findings.add(
        Rule.OVERWRITTEN,
        facts.rank(),
        "rows of other ranks lie between those of %s, but %s"
            .formatted(facts.storage(storage).name(), why));
  }
}
