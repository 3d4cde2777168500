package dev.symplan.planner.verify;

import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * {@link Rule#OVERWRITTEN} of inputs that the planner keeps in the host's memory, which have copies
 * on the device. In the graph's order, each copy that an op uses holds what the last write into any
 * of them left, and in the end so does the input. The caller may change inputs between the graphs
 * of a program, so each graph ends like the program, and makes copies of its own. {@link
 * HostCopyRules} checks that the copies themselves are done.
 */
final class HostInputRules {
  /** The content of a storage that nothing wrote: the tensor that the caller gave. */
  private static final int GIVEN = -1;

  private final AliasModel facts;
  private final Findings findings;

  /** By storage of an input in the host's memory, or of a copy of one, the storage of the input. */
  private final Map<Integer, Integer> inputOf = new HashMap<>();

  /** By such a storage, the op whose write it holds. */
  private final Map<Integer, Integer> held = new HashMap<>();

  /** By input, the op that wrote last into it or a copy. */
  private final Map<Integer, Integer> latest = new HashMap<>();

  private HostInputRules(AliasModel facts, Findings findings) {
    this.facts = facts;
    this.findings = findings;
  }

  static void check(AliasModel facts, Findings findings) {
    var rules = new HostInputRules(facts, findings);
    for (var input : facts.plan.graph().inputs()) {
      if (input.isTensor()
          && input.tensor().space() == MemorySpace.HOST
          && isKept(input, facts.plan.graph().ops())) {
        rules.hold(facts.storageOf(input.id()), facts.storageOf(input.id()), GIVEN);
      }
    }
    if (!rules.inputOf.isEmpty()) {
      rules.check();
    }
  }

  /**
   * Whether the planner keeps an input there, so that its copies are the input. The graph's own
   * copies ({@code symplan::reload}) are new tensors.
   */
  private static boolean isKept(Value input, List<Op> ops) {
    return ops.stream()
        .anyMatch(
            op ->
                (op.def().name().toString().equals("symplan::fetch")
                        || op.def().name().toString().equals("symplan::offload_"))
                    && op.operands().contains(input));
  }

  private void hold(int storage, int input, int write) {
    inputOf.put(storage, input);
    held.put(storage, write);
    latest.putIfAbsent(input, GIVEN);
  }

  private void check() {
    for (int i = 0; i < facts.plan.graph().ops().size(); i++) {
      var op = facts.op(i);
      if (op.def().has(OpTrait.BORDER)) {
        requireStored();
        held.keySet().removeIf(storage -> !isInput(storage));
      } else if (op.def().has(OpTrait.HOST_COPY)) {
        copy(i, op);
      } else if (!op.def().has(OpTrait.HOST_COPY_END) && facts.needsStep(i)) {
        for (int value : facts.reads(i)) {
          requireLatest(i, facts.storageOf(value));
        }
        for (int value : facts.mutated(i)) {
          write(i, facts.storageOf(value));
        }
      }
    }
    requireStored();
  }

  private void requireStored() {
    latest.forEach(
        (input, write) -> {
          if (!Objects.equals(held.get(input), write)) {
            wrong(
                "the input %s ends without what %s"
                    .formatted(facts.storage(input).name(), left(write, "its copy")));
          }
        });
  }

  private void write(int index, int storage) {
    if (inputOf.containsKey(storage)) {
      held.put(storage, index);
      latest.put(inputOf.getOrDefault(storage, storage), index);
    }
  }

  private void copy(int index, Op op) {
    Value source = op.operands().getFirst();
    int from = facts.storageOf(source.id());
    int to = facts.storageOf(op.result().id());
    requireLatest(index, from);
    if (isInput(to)) {
      if (inputOf.getOrDefault(from, from) != to || isInput(from)) {
        wrong(
            "%s writes over the input %s, of which %s is not a copy"
                .formatted(facts.words.text(index), facts.storage(to).name(), source.name()));
      }
      held.put(to, held.getOrDefault(from, GIVEN));
    } else if (isInput(from)) {
      hold(to, from, held.getOrDefault(from, GIVEN));
      if (facts.mayAlias().isShared(to)) {
        wrong(
            "%s is a copy of the input %s, but may be another tensor, too"
                .formatted(op.result().name(), facts.storage(from).name()));
      }
    }
  }

  private boolean isInput(int storage) {
    return inputOf.getOrDefault(storage, GIVEN) == storage;
  }

  private void requireLatest(int index, int storage) {
    int input = inputOf.getOrDefault(storage, GIVEN);
    if (input != GIVEN && !held.containsKey(storage)) {
      wrong(
          "%s reads %s, which an earlier graph of the program copied from the input %s"
              .formatted(
                  facts.words.text(index),
                  facts.storage(storage).name(),
                  facts.storage(input).name()));
    } else if (input != GIVEN && !Objects.equals(held.get(storage), latest.get(input))) {
      wrong(
          "%s reads %s without what %s"
              .formatted(
                  facts.words.text(index),
                  facts.storage(storage).name(),
                  left(
                      latest.getOrDefault(input, GIVEN),
                      "another copy of the input " + facts.storage(input).name())));
    }
  }

  private String left(int write, String where) {
    return write == GIVEN
        ? "the caller gave"
        : "%s wrote into %s".formatted(facts.words.text(write), where);
  }

  private void wrong(String message) {
    findings.add(Rule.OVERWRITTEN, facts.rank(), message);
  }
}
