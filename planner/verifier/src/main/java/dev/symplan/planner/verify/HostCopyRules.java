package dev.symplan.planner.verify;

import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * {@link Rule#RACE} and {@link Rule#PLACEMENT} of copies between device and host memory, which run
 * beside compute. From the op that begins a copy to the one op that waits for it, in the graph's
 * order, nothing reads or writes the copy or writes its source. What waits counts as writing the
 * copy, so {@link MemoryRun} finds steps in another order, and whatever lies in the way.
 *
 * <p>The host's memory holds inputs ({@link HostInputRules}) and what such copies give. Nothing but
 * copies and views reads it, and nothing but copies writes it. A copy is of bytes, so both tensors
 * have the same strides.
 */
final class HostCopyRules {
  private final AliasModel facts;
  private final Findings findings;

  private HostCopyRules(AliasModel facts, Findings findings) {
    this.facts = facts;
    this.findings = findings;
  }

  static void check(AliasModel facts, Findings findings) {
    var rules = new HostCopyRules(facts, findings);
    rules.checkCopies();
    rules.checkPlaces();
  }

  private void wrong(Rule rule, String message) {
    findings.add(rule, facts.rank(), message);
  }

  private void checkCopies() {
    // By the storage of the copy, the op that has begun it.
    Map<Integer, Integer> underWay = new HashMap<>();
    for (int i = 0; i < facts.plan.graph().ops().size(); i++) {
      var op = facts.op(i);
      if (op.def().has(OpTrait.HOST_COPY_END)) {
        checkEnd(i, op, underWay);
      } else if (!underWay.isEmpty()) {
        checkBeside(i, op, underWay);
      }
      if (op.def().has(OpTrait.HOST_COPY)) {
        checkAlike(op);
        underWay.put(storage(op.result()), i);
      }
    }
    underWay
        .values()
        .forEach(op -> wrong(Rule.RACE, "nothing waits for %s".formatted(facts.words.text(op))));
  }

  private int storage(Value value) {
    return facts.storageOf(value.id());
  }

  /** The source of a copy is its first operand; that of what waits is, too. */
  private static Value source(Op op) {
    return op.operands().getFirst();
  }

  private void checkEnd(int index, Op op, Map<Integer, Integer> underWay) {
    var copy = op.operands().getLast();
    var begun = underWay.remove(storage(copy));
    if (begun == null) {
      wrong(
          Rule.RACE,
          "%s waits for %s, but no copy to it is under way"
              .formatted(facts.words.text(index), copy.name()));
    } else if (!source(facts.op(begun)).equals(source(op))) {
      wrong(
          Rule.RACE,
          "%s keeps %s until the copy is done, but %s reads %s"
              .formatted(
                  facts.words.text(index),
                  source(op).name(),
                  facts.words.text(begun),
                  source(facts.op(begun)).name()));
    }
  }

  private void checkBeside(int index, Op op, Map<Integer, Integer> underWay) {
    var touched = new ArrayList<Value>(op.operands());
    touched.addAll(op.results());
    var written = storages(op.written());
    underWay.forEach(
        (copy, begun) -> {
          int source = storage(source(facts.op(begun)));
          if (op.def().isFence()) {
            wrong(
                Rule.RACE,
                "%s comes while %s is under way"
                    .formatted(facts.words.text(index), facts.words.text(begun)));
          } else if (storages(touched).contains(copy) || written.contains(source)) {
            wrong(
                Rule.RACE,
                "%s touches %s before anything waits for %s"
                    .formatted(
                        facts.words.text(index),
                        facts.storage(storages(touched).contains(copy) ? copy : source).name(),
                        facts.words.text(begun)));
          }
        });
  }

  private List<Integer> storages(List<Value> values) {
    return values.stream().filter(Value::isTensor).map(this::storage).toList();
  }

  private void checkAlike(Op op) {
    var from = source(op).tensor();
    var to = op.result().tensor();
    if (!from.strides().equals(to.strides())) {
      wrong(
          Rule.PLACEMENT,
          "%s copies bytes, but %s is %s and %s is %s"
              .formatted(op.def().name(), source(op).name(), from, op.result().name(), to));
    }
  }

  private void checkPlaces() {
    var graph = facts.plan.graph();
    for (var input : graph.inputs()) {
      if (input.isTensor()) {
        checkDefined(input, -1, isHost(input.type()));
      }
    }
    for (int i = 0; i < graph.ops().size(); i++) {
      var op = graph.ops().get(i);
      boolean copies = op.def().has(OpTrait.HOST_COPY) || op.def().has(OpTrait.HOST_COPY_END);
      boolean runs = facts.needsStep(i) || facts.fresh(i).length > 0;
      for (var value : op.operands()) {
        if (!copies && runs && isInHost(value)) {
          wrong(
              Rule.PLACEMENT,
              "%s reads %s in the host's memory".formatted(facts.words.text(i), value.name()));
        }
      }
      for (var value : op.results()) {
        // PlacementRules find views that are not in what they are views of.
        if (value.isTensor() && facts.definedBy(storage(value)) == i) {
          checkDefined(value, i, isOffload(op));
        }
      }
    }
  }

  /** Checks where a storage is that an op gives, or the caller if {@code op} is −1. */
  private void checkDefined(Value value, int op, boolean inHost) {
    if (isInHost(value) != inHost) {
      wrong(
          Rule.PLACEMENT,
          "%s gives %s, which is %s the host's memory"
              .formatted(
                  op < 0 ? "the caller" : facts.words.text(op),
                  value.name(),
                  inHost ? "not in" : "in"));
    }
  }

  private boolean isInHost(Value value) {
    return value.isTensor()
        && facts.plan.placement(value).exists()
        && facts.plan.buffer(value).arena() == ArenaKind.HOST;
  }

  /** Whether the rule of an op, whatever the graph says, gives something in the host's memory. */
  private static boolean isOffload(Op op) {
    return op.def().has(OpTrait.HOST_COPY) && isHost(op.infer().getFirst().type());
  }

  private static boolean isHost(Type type) {
    return type instanceof TensorType tensor && tensor.space() == MemorySpace.HOST;
  }
}
