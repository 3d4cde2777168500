package dev.symplan.planner.verify;

import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.ResultRows;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;

/**
 * {@link Rule#OVERWRITTEN} where a tensor is rows with those of others between them, since a later
 * op joins them so. Graphs do not say it: ops that know nothing of it would read and write what
 * lies between. So the tensor is the result of a collective that can write rows, in a kernel
 * without an epilogue, and only the op that joins it reads it, in a step of its own, where its
 * result has exactly these rows. Or it is what such a collective reduces in place: then an op that
 * can leave memory between rows makes it, in a step of its own. {@link MemoryRun} checks each row
 * by itself.
 */
final class JoinedRules {
  private final Plan plan;
  private final AliasModel facts;
  private final Findings findings;

  /** The ops that are steps of their own. */
  private final Set<Integer> alone = new HashSet<>();

  private JoinedRules(Plan plan, AliasModel facts, Findings findings) {
    this.plan = plan;
    this.facts = facts;
    this.findings = findings;
  }

  static void check(Plan plan, AliasModel facts, Findings findings) {
    var rules = new JoinedRules(plan, facts, findings);
    var pieces = new HashSet<Integer>();
    for (int storage = 0; storage < facts.storageCount(); storage++) {
      if (facts.isInRows(facts.storage(storage).id())) {
        pieces.add(storage);
      }
    }
    if (!pieces.isEmpty()) {
      rules.check(pieces);
    }
  }

  private void check(Set<Integer> pieces) {
    for (var step : facts.plan.steps()) {
      if (step instanceof Step.Compute(int op)) {
        alone.add(op);
      }
    }
    pieces.forEach(this::checkMaker);
    for (int i = 0; i < facts.plan.graph().ops().size(); i++) {
      for (var value : facts.op(i).operands()) {
        if (value.isTensor() && pieces.contains(facts.storageOf(value.id()))) {
          checkUser(value, i);
        }
      }
    }
    for (var output : facts.plan.graph().outputValues()) {
      if (output.isTensor() && pieces.contains(facts.storageOf(output.id()))) {
        wrong(facts.storageOf(output.id()), "the caller does not know it");
      }
    }
  }

  private void checkMaker(int storage) {
    var piece = facts.storage(storage);
    int maker = facts.definedBy(storage);
    int k = maker < 0 ? -1 : facts.collectiveOf(maker);
    boolean written =
        k >= 0
            ? canWrite(facts.plan.collectives().get(k), piece)
            : alone.contains(maker)
                && facts.op(maker).def().has(OpTrait.ROWS_APART)
                && lies(piece).isPresent();
    if (!written || !isAligned(piece) || facts.mayAlias().isShared(storage)) {
      wrong(storage, "nothing writes it so");
    }
  }

  private boolean isAligned(Value piece) {
    var placement = facts.plan.placements().get(piece.id());
    return facts.begin(piece.id()) % Alignment.VECTOR == 0
        && placement.stride() % Alignment.VECTOR == 0
        && placement.pitch() % Alignment.VECTOR == 0;
  }

  private boolean canWrite(CollectivePlan collective, Value piece) {
    int tensor = collective.results().indexOf(piece.id());
    return tensor >= 0
        && !collective.hasEpilogue()
        && lies(piece)
            .filter(
                lying ->
                    ResultRows.allow(
                        collective.spec(),
                        facts.op(collective.op()),
                        tensor,
                        lying,
                        plan.group(collective.group()).size()))
            .isPresent();
  }

  /** A tensor as it lies, if it consists of such rows. */
  private Optional<TensorType> lies(Value value) {
    var placement = facts.plan.placements().get(value.id());
    return value.tensor().bytes() % placement.stride() == 0
        ? ResultRows.lying(value.tensor(), placement.stride(), placement.pitch())
        : Optional.empty();
  }

  /** Whether a collective reduces a tensor where its result is. */
  private boolean isReduced(Value value, int op) {
    int k = facts.collectiveOf(op);
    if (k < 0) {
      return false;
    }
    var collective = facts.plan.collectives().get(k);
    int tensor = collective.operands().indexOf(value.id());
    var placements = facts.plan.placements();
    return collective.inPlace()
        && tensor >= 0
        && placements.get(value.id()).equals(placements.get(collective.results().get(tensor)));
  }

  private void checkUser(Value value, int index) {
    var op = facts.op(index);
    boolean known =
        op.def().has(OpTrait.CONCATENATION)
            ? alone.contains(index) && isJoined(value, op)
            : facts.needsStep(index)
                ? isReduced(value, index)
                : op.results().stream().allMatch(view -> keepsRows(view, value));
    if (!known) {
      wrong(facts.storageOf(value.id()), facts.words.text(index) + " does not know it");
    }
  }

  /** Whether a view is the same rows. */
  private boolean keepsRows(Value view, Value piece) {
    var placement = facts.plan.placements().get(view.id());
    return facts.storageOf(view.id()) == facts.storageOf(piece.id())
        && facts.offsetInStorage(view.id()) == 0
        && view.tensor().bytes() == piece.tensor().bytes()
        && placement.equals(facts.plan.placements().get(piece.id()))
        && lies(view).isPresent();
  }

  /** Whether a piece lies where the result of an op has its rows. */
  private boolean isJoined(Value piece, Op op) {
    var result = op.result();
    long rows = rows(op);
    var placement = facts.plan.placements().get(piece.id());
    var offset = rows == 0 ? Optional.<Long>empty() : offset(piece, op, rows);
    return offset.isPresent()
        && result.tensor().isContiguous()
        && !facts.isInRows(result.id())
        && facts.spread(result.id()) == 0
        && facts.space(piece.id()) == facts.space(result.id())
        && facts.begin(piece.id()) == facts.begin(result.id()) + offset.get()
        && placement.stride() == piece.tensor().bytes() / rows
        && placement.pitch() == result.tensor().bytes() / rows;
  }

  /**
   * Where the rows of a piece begin in those of the result; empty if it is there twice, or with
   * other elements.
   */
  private Optional<Long> offset(Value piece, Op op, long rows) {
    Optional<Long> offset = Optional.empty();
    long next = 0;
    for (var other : op.args().getFirst().operands()) {
      if (facts.storageOf(other.id()) == facts.storageOf(piece.id())) {
        if (offset.isPresent() || other.tensor().dtype() != op.result().tensor().dtype()) {
          return Optional.empty();
        }
        offset = Optional.of(next);
      }
      next += other.tensor().numel() / rows * op.result().tensor().dtype().bytes();
    }
    return offset;
  }

  /** {@return of how many rows the result is of an op that joins tensors; 0 if it is not known} */
  static long rows(Op op) {
    var result = op.result().tensor();
    if (!(op.arg("dim") instanceof Arg.Int(long given))) {
      return 0;
    }
    long rows = 1;
    for (int i = 0; i < (given < 0 ? given + result.rank() : given); i++) {
      rows *= result.size(i);
    }
    return rows;
  }

  private void wrong(int storage, String why) {
    findings.add(
        Rule.OVERWRITTEN,
        facts.rank(),
        "rows of other tensors lie between those of %s, but %s"
            .formatted(facts.storage(storage).name(), why));
  }
}
