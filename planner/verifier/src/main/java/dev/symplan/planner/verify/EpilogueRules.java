package dev.symplan.planner.verify;

import com.google.common.base.Suppliers;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.LinkedHashMultimap;
import com.google.common.collect.SetMultimap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.graph.Rows;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Epilogue;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.Arrays;
import java.util.function.Supplier;

/**
 * Steps that run in the kernel of the collective before them ({@link Epilogue}). At a row, the
 * kernel has reduced no other row for sure, and peers still read operands. So the step reads what
 * is reduced row by row, and writes nothing where peers read; and where the kernel alone reads an
 * operand, only over the same elements. What it does not store, nothing else reads.
 *
 * <p>Where peers store to the result, a block takes those rows through the step that blocks of the
 * same number on all ranks have read and stored: so slices are whole rows, as many on each rank,
 * and the step writes over the operand or the result only in those rows, where it reads. Where
 * ranks push slices to each other, a row has been read before the step gets it, but others may not:
 * so the step writes over the operand only where it reads.
 *
 * <p>That its ops go by rows is for {@link FusionRules}.
 */
final class EpilogueRules {
  private final Plan plan;
  private final AliasModel facts;
  private final Findings findings;

  /** By storage, the ops that read it and may run. */
  private final Supplier<SetMultimap<Integer, Integer>> readers = Suppliers.memoize(this::readers);

  private EpilogueRules(Plan plan, AliasModel facts, Findings findings) {
    this.plan = plan;
    this.facts = facts;
    this.findings = findings;
  }

  static void check(Plan plan, AliasModel facts, Findings findings) {
    var rules = new EpilogueRules(plan, facts, findings);
    var steps = facts.plan.steps();
    for (int s = 0; s < steps.size(); s++) {
      if (steps.get(s) instanceof Step.Start(int k)) {
        var collective = facts.plan.collectives().get(k);
        if (collective.hasEpilogue()) {
          rules.check(s, collective);
        }
      }
    }
  }

  private SetMultimap<Integer, Integer> readers() {
    var found = LinkedHashMultimap.<Integer, Integer>create();
    for (int op = 0; op < facts.plan.graph().ops().size(); op++) {
      if (facts.mayHaveStep(op)) {
        for (int value : facts.reads(op)) {
          found.put(facts.storageOf(value), op);
        }
      }
    }
    return found;
  }

  private void check(int start, CollectivePlan collective) {
    if (!collective.spec().takesEpilogues()
        || collective.stream() != StreamKind.COMPUTE
        || collective.results().size() != 1) {
      wrong(
          Rule.STRUCTURE,
          start,
          "%s cannot have an epilogue as %s on the %s stream"
              .formatted(
                  facts.words.text(collective.op()),
                  collective.variant().text(),
                  collective.stream().text()));
      return;
    }
    var ops = opsOf(start + 1);
    if (ops.isEmpty()) {
      wrong(
          Rule.STRUCTURE,
          start,
          "no local step follows %s, which should have an epilogue"
              .formatted(facts.words.text(collective.op())));
      return;
    }
    for (int i = 0; i < ops.length(); i++) {
      // Where its pieces lie side by side already, a concatenation leaves no kernel behind.
      if (facts.op(ops.get(i)).def().has(OpTrait.CONCATENATION)) {
        wrong(
            Rule.STRUCTURE,
            start + 1,
            "%s cannot run in the kernel of %s"
                .formatted(facts.words.text(ops.get(i)), facts.words.text(collective.op())));
      }
    }
    if (ops.stream().allMatch(op -> !facts.op(op).results().isEmpty())) {
      checkReads(start + 1, ops, collective);
    }
    checkWrites(start + 1, ops, collective);
    if (collective.spec().needsSymmetricResult()) {
      checkSlices(start, ops, collective);
    }
    if (collective.spec().needsSymmetricResult()
        || collective.spec().protocol().pushes().size() > 1) {
      checkWholeRows(start + 1, ops, collective);
    }
    if (!collective.epilogue().orElseThrow().stored()) {
      checkOthers(start + 1, ops, collective);
    }
  }

  /** The ops of a local step; none for others, or if there is no such step. */
  private ImmutableIntArray opsOf(int step) {
    if (step >= facts.plan.steps().size()) {
      return ImmutableIntArray.of();
    }
    return switch (facts.plan.steps().get(step)) {
      case Step.Compute(int op) -> ImmutableIntArray.of(op);
      case Step.Fused(var ops) -> ops;
      case Step.Start _, Step.Join _ -> ImmutableIntArray.of();
    };
  }

  private void checkReads(int step, ImmutableIntArray ops, CollectivePlan collective) {
    int result = collective.results().getFirst();
    var reduced = facts.value(result).tensor();
    int shared =
        Rows.shared(ops.stream().mapToObj(facts::op).collect(ImmutableList.toImmutableList()));
    for (int i = 0; i < ops.length(); i++) {
      for (int read : facts.reads(ops.get(i))) {
        if (!facts.overlap(read, result)) {
          continue;
        }
        var type = facts.value(read).tensor();
        int rows = Math.min(shared, type.rank() - 1);
        boolean whole =
            facts.begin(read) == facts.begin(result)
                && type.dtype() == reduced.dtype()
                && type.numel() == reduced.numel()
                && type.isContiguous()
                && reduced.isContiguous();
        if (!whole
            || rows < 1
            || !Rows.carries(facts.op(ops.get(i)), facts.value(read), rows)
            || !Epilogue.holds(type, rows)) {
          wrong(
              Rule.RACE,
              step,
              "%s does not read %s row by row, but runs while %s reduces it"
                  .formatted(
                      facts.words.text(ops.get(i)),
                      facts.value(read).name(),
                      facts.words.text(collective.op())));
        }
      }
    }
  }

  private void checkWrites(int step, ImmutableIntArray ops, CollectivePlan collective) {
    // Peers' blocks read slices of which they then store the reduced rows.
    boolean bySlices = collective.spec().needsSymmetricResult();
    boolean remote = collective.spec().needsSymmetricOperand() && !bySlices;
    for (int i = 0; i < ops.length(); i++) {
      for (int written : facts.fresh(ops.get(i))) {
        for (int operand : collective.operands()) {
          if (facts.overlap(written, operand)
              && (remote
                  || !(facts.sameElements(written, operand)
                      || bySlices
                          && facts.sameElements(collective.results().getFirst(), operand)
                          && isReadThere(written, ops, collective.results().getFirst())))) {
            wrong(
                Rule.RACE,
                step,
                "%s writes %s at %s, where %s %s %s until it ends"
                    .formatted(
                        facts.words.text(ops.get(i)),
                        facts.value(written).name(),
                        facts.words.address(written),
                        facts.words.text(collective.op()),
                        remote || bySlices ? "lets peers read" : "reads",
                        facts.value(operand).name()));
          }
        }
      }
    }
  }

  /** Peers store slices of the result, which the step then reads as rows. */
  private void checkSlices(int start, ImmutableIntArray ops, CollectivePlan collective) {
    int result = collective.results().getFirst();
    if (!collective.epilogue().orElseThrow().stored() || !collective.endBarrier()) {
      wrong(
          Rule.RACE,
          start,
          "%s must store %s and meet, as peers store rows of it that the next step reads"
              .formatted(facts.words.text(collective.op()), facts.value(result).name()));
    }
    for (int i = 0; i < ops.length(); i++) {
      for (int written : facts.fresh(ops.get(i))) {
        if (facts.overlap(written, result) && !isReadThere(written, ops, result)) {
          wrong(
              Rule.RACE,
              start + 1,
              "%s writes %s at %s, where peers store other rows of %s"
                  .formatted(
                      facts.words.text(ops.get(i)),
                      facts.value(written).name(),
                      facts.words.address(written),
                      facts.value(result).name()));
        }
      }
    }
  }

  /** Each rank reduces a slice, whose rows one block takes on all ranks. */
  private void checkWholeRows(int step, ImmutableIntArray ops, CollectivePlan collective) {
    int result = collective.results().getFirst();
    int ranks = plan.group(collective.group()).size();
    int shared =
        Rows.shared(ops.stream().mapToObj(facts::op).collect(ImmutableList.toImmutableList()));
    for (int i = 0; i < ops.length(); i++) {
      for (int read : facts.reads(ops.get(i))) {
        if (facts.overlap(read, result)
            && Epilogue.rows(facts.value(read).tensor(), shared) % ranks != 0) {
          wrong(
              Rule.RACE,
              step,
              "%s reads rows of %s that no one of the %s ranks stores as a whole"
                  .formatted(facts.words.text(ops.get(i)), facts.value(read).name(), ranks));
        }
      }
    }
  }

  /** Whether a tensor lies over one of the same elements that the step reads of the result. */
  private boolean isReadThere(int written, ImmutableIntArray ops, int result) {
    return ops.stream()
        .flatMap(op -> Arrays.stream(facts.reads(op)))
        .anyMatch(read -> facts.overlap(read, result) && facts.sameElements(written, read));
  }

  /** Nothing but the step itself may read what the kernel does not store. */
  private void checkOthers(int step, ImmutableIntArray ops, CollectivePlan collective) {
    int storage = facts.storageOf(collective.results().getFirst());
    for (int op : readers.get().get(storage)) {
      if (op != collective.op() && !ops.contains(op)) {
        unstored(step, collective, facts.words.text(op) + " reads it");
      }
    }
    if (facts.plan.graph().outputValues().stream()
        .anyMatch(value -> value.isTensor() && facts.storageOf(value.id()) == storage)) {
      unstored(step, collective, "it is an output");
    }
    if (facts.mayAlias().isShared(storage)) {
      unstored(step, collective, "another tensor may be in its memory");
    }
  }

  private void unstored(int step, CollectivePlan collective, String why) {
    wrong(
        Rule.OVERWRITTEN,
        step,
        "%s does not store %s, but %s"
            .formatted(
                facts.words.text(collective.op()),
                facts.value(collective.results().getFirst()).name(),
                why));
  }

  private void wrong(Rule rule, int step, String message) {
    findings.add(rule, facts.rank(), step, message, ImmutableList.of(facts.words.stepText(step)));
  }
}
