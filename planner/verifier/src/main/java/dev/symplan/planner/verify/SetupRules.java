package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.BitSet;
import java.util.List;

/**
 * {@link Rule#SETUP}: what stands before {@code symplan::setup_end} runs once, so it would do in
 * each run what it did in the first. It reads nothing but what it makes itself and inputs that stay
 * as they are, has no effect, and meets no peer. What it gives to the runs is in memory of the
 * plan's, and no op writes into it.
 *
 * <p>That nothing else is ever put into this memory follows from {@link MemoryRun}, which finds it
 * intact after a run: each later run does the same.
 */
final class SetupRules {
  private final AliasModel facts;
  private final Findings findings;
  private final int end;

  private SetupRules(AliasModel facts, Findings findings) {
    this.facts = facts;
    this.findings = findings;
    this.end = facts.setupEnd;
  }

  static void check(AliasModel facts, Findings findings) {
    var rules = new SetupRules(facts, findings);
    if (rules.end >= 0) {
      rules.check();
    }
  }

  /** {@return the storages that the setup makes and other ops have as arguments, or the caller} */
  static BitSet kept(AliasModel facts) {
    var kept = new BitSet();
    int end = facts.setupEnd;
    if (end < 0) {
      return kept;
    }
    var graph = facts.plan.graph();
    for (var op : graph.ops().subList(end, graph.ops().size())) {
      op.operands().forEach(value -> mark(facts, value.id(), end, kept));
    }
    graph.outputValues().forEach(value -> mark(facts, value.id(), end, kept));
    return kept;
  }

  private static void mark(AliasModel facts, int value, int end, BitSet kept) {
    int storage = facts.storageOf(value);
    if (storage >= 0 && facts.definedBy(storage) >= 0 && facts.definedBy(storage) < end) {
      kept.set(storage);
    }
  }

  private void check() {
    var graph = facts.plan.graph();
    var ops = graph.ops();
    var written = new BitSet();
    for (int op = 0; op < ops.size(); op++) {
      for (int value : facts.mutated(op)) {
        written.set(facts.storageOf(value));
      }
    }
    var weights = weights();
    for (int op = 0; op < end; op++) {
      if (mayDiffer(ops.get(op))) {
        wrong("%s runs once, but may do something else each time", op);
      }
      for (var value : ops.get(op).operands()) {
        int storage = facts.storageOf(value.id());
        boolean input = storage < 0 || facts.definedBy(storage) < 0;
        if (input && !(value.isTensor() && staysAsGiven(storage, written, weights))) {
          wrong("%s runs once, but reads an input that may change: " + value.name(), op);
        }
      }
    }
    for (int op = end + 1; op < ops.size(); op++) {
      if (ops.get(op).def().has(OpTrait.SETUP_END)) {
        wrong("%s ends the setup a second time", op);
      }
    }
    kept(facts).stream().forEach(storage -> checkKept(storage, written));
    checkSteps();
  }

  private void checkSteps() {
    var steps = facts.plan.steps();
    boolean ended = false;
    for (int step = 0; step < steps.size(); step++) {
      var ops =
          switch (steps.get(step)) {
            case Step.Compute(int op) -> ImmutableList.of(op);
            case Step.Fused(var fused) -> fused.asList();
            case Step.Start(int k) -> ImmutableList.of(facts.plan.collectives().get(k).op());
            case Step.Join(int k) -> ImmutableList.of(facts.plan.collectives().get(k).op());
          };
      ended |= ops.contains(end);
      for (int op : ops) {
        if (op < end == ended) {
          findings.add(
              Rule.SETUP,
              facts.rank(),
              step,
              "%s %s the setup, which runs once, but stands %s its end"
                  .formatted(
                      facts.words.stepText(step),
                      op < end ? "belongs to" : "does not belong to",
                      ended ? "after" : "before"),
              List.of());
        }
      }
    }
  }

  /** The inputs that the plan says stay the same from run to run. */
  private ImmutableSet<String> weights() {
    return facts.op(end).arg("weights") instanceof Arg.Seq(var names)
        ? names.stream()
            .map(name -> name instanceof Arg.Str(var text) ? text : "")
            .collect(ImmutableSet.toImmutableSet())
        : ImmutableSet.of();
  }

  private static boolean mayDiffer(Op op) {
    return op.def().rule().isEmpty()
        || op.def().hasEffect()
        || op.def().collective().isPresent()
        || op.def().has(OpTrait.BORDER)
        || op.def().has(OpTrait.HOST_COPY)
        || drawsNumbers(op);
  }

  /** Whether arguments, not the op, say that random numbers are drawn: what is dropped, and if. */
  private static boolean drawsNumbers(Op op) {
    return op.def().schema().params().stream()
        .map(param -> param.name())
        .anyMatch(
            name ->
                switch (name) {
                  case "dropout_p" ->
                      op.arg(name).number().map(Number::doubleValue).orElse(1.0) != 0;
                  case "train" ->
                      op.def().name().name().contains("dropout")
                          && !op.arg(name).equals(new Arg.Bool(false));
                  default -> false;
                });
  }

  private boolean staysAsGiven(int storage, BitSet written, ImmutableSet<String> weights) {
    return weights.contains(facts.storage(storage).name())
        && !written.get(storage)
        && !facts.mayAlias().isShared(storage)
        && !AliasModel.isDonated(facts.storage(storage));
  }

  private void checkKept(int storage, BitSet written) {
    var value = facts.storage(storage);
    var placement = facts.plan.placement(value);
    if (written.get(storage) || facts.mayAlias().isShared(storage)) {
      wrong("%s gives " + value.name() + " to each run, but something may write into it", end);
    } else if (!placement.exists()) {
      wrong("%s gives " + value.name() + " to each run, which has no memory", end);
    } else if (!facts.plan.buffers().get(placement.buffer()).arena().isPlanned()) {
      wrong("%s gives " + value.name() + " to each run in memory of the caller's", end);
    }
  }

  private void wrong(String message, int op) {
    findings.add(Rule.SETUP, facts.rank(), -1, message.formatted(facts.words.text(op)), List.of());
  }
}
