package dev.symplan.planner.pass.place;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Rows;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Concatenation;
import dev.symplan.planner.pass.analysis.Fusion;
import dev.symplan.planner.pass.select.Realized;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;

/**
 * Decides which storages of one rank class lie in the memory of which others: results in that of
 * operands that end, pieces in what joins them, shares of ranks in the whole.
 */
final class RankMerging {
  private final Realized graph;
  private final Aliases aliases;
  private final Fusion fusion;
  private final Schedule schedule;
  private final Liveness life;
  private StorageMerges merges;

  RankMerging(Realized graph, Schedule schedule, Liveness life) {
    this.graph = graph;
    this.aliases = graph.aliases();
    this.fusion = graph.analyses().fusion();
    this.schedule = schedule;
    this.life = life;
    this.merges = StorageMerges.apart(graph);
  }

  /** {@return the live ranges, and the memory that storages share, as decided} */
  Lifetimes finish() {
    return new Lifetimes(life, merges.freeze());
  }

  /** {@return the most bytes of the rank's own memory that are live at one step} */
  long peakBytes() {
    return life.peakBytes(merges.freeze());
  }

  /** {@return whether the results of a collective can take the memory of its operands} */
  boolean canBeInPlace(int k) {
    var collective = graph.collectives().get(k);
    if (!graph.spec(k).allowsInPlace()) {
      return false;
    }
    var sources = new HashSet<Integer>();
    for (int i = 0; i < collective.operands().size(); i++) {
      var operand = collective.operands().get(i);
      var result = collective.results().get(i);
      int from = aliases.id(operand);
      if (!life.diesIn(operand, schedule.startStep().get(k))
          || !aliases.isWhole(operand)
          || !operand.tensor().hasSameLayout(result.tensor())
          || graph.arena(from) != graph.arena(aliases.id(result))
          || merges.isInRows(from) != merges.isInRows(aliases.id(result))
          || !sources.add(from)) {
        return false;
      }
    }
    return true;
  }

  void mergeCollective(int k) {
    var collective = graph.collectives().get(k);
    for (int i = 0; i < collective.operands().size(); i++) {
      merge(collective.operands().get(i), collective.results().get(i));
    }
  }

  /**
   * Puts an elementwise result into the memory of an operand without later readers, and an updated
   * copy into the memory of its original. If one of the two is symmetric, both become so.
   *
   * @param symmetricToo whether two symmetric storages may become one, which all ranks must do
   *     alike
   */
  void mergeLocal(boolean symmetricToo) {
    // A storage ends in one unit, so that no other could take it.
    var taken = new HashSet<Integer>();
    for (var replacement : Parallel.concat(fusion.units().size(), this::replacements)) {
      for (var operand : replacement.operands()) {
        if (!taken.contains(aliases.id(operand))
            && mayReplace(operand, replacement.result(), symmetricToo)) {
          taken.add(aliases.id(operand));
          merge(operand, replacement.result());
          break;
        }
      }
    }
  }

  /** The operands whose memory a result could take, the best first, as far as each is by itself. */
  private record Replacement(Value result, List<Value> operands) {}

  private List<Replacement> replacements(int from, int to) {
    var found = new ArrayList<Replacement>();
    for (var unit : fusion.units().subList(from, to)) {
      addReplacements(unit, found);
    }
    return found;
  }

  private void addReplacements(ImmutableIntArray unit, List<Replacement> found) {
    for (int i = 0; i < unit.length(); i++) {
      var op = graph.graph().ops().get(unit.get(i));
      if ((op.def().has(OpTrait.ELEMENTWISE) || op.def().has(OpTrait.UPDATES_SELF))
          && op.results().size() == 1
          && op.results().getFirst().isTensor()
          && !fusion.isPassing(aliases.id(op.result()))
          && !graph.arena(aliases.id(op.result())).isExternal()
          && aliases.defines(op.result())) {
        var operands = operands(unit, i);
        if (!operands.isEmpty()) {
          found.add(new Replacement(op.result(), operands));
        }
      }
    }
  }

  /** What the op at {@code position} or one before it reads, and its result could replace. */
  private List<Value> operands(ImmutableIntArray unit, int position) {
    var result = graph.graph().ops().get(unit.get(position)).result();
    var found = new ArrayList<Value>();
    for (int i = position; i >= 0; i--) {
      for (var arg : replaceable(graph.graph().ops().get(unit.get(i)))) {
        if (arg instanceof Arg.Ref(Value operand)
            && operand.isTensor()
            && canReplace(unit, position, operand, result)) {
          found.add(operand);
        }
      }
    }
    return found;
  }

  /** Whether what was merged already allows it. */
  private boolean mayReplace(Value operand, Value result, boolean symmetricToo) {
    int from = aliases.id(operand);
    int to = aliases.id(result);
    return !merges.isShard(to)
        && !merges.isInRows(to)
        && !merges.isShard(from)
        && (symmetricToo || !merges.isSymmetric(from) || mayBeMoved(to));
  }

  /** The arguments whose memory an op's result may take. */
  private List<Arg> replaceable(Op op) {
    if (!op.def().has(OpTrait.UPDATES_SELF)) {
      return op.args();
    }
    if (!(op.arg("self") instanceof Arg.Ref(Value self))) {
      return List.of();
    }
    // Anything else that the op reads of that memory, through a view, it reads when self is
    // updated.
    long mentions =
        op.operands().stream().filter(value -> aliases.id(value) == aliases.id(self)).count();
    return mentions == 1 ? List.of(op.arg("self")) : List.of();
  }

  private boolean canReplace(ImmutableIntArray unit, int position, Value operand, Value result) {
    int from = aliases.id(operand);
    return !fusion.isPassing(from)
        && aliases.storage(from).def() < unit.get(0)
        && !graph.arena(from).isExternal()
        && aliases.isWhole(operand)
        && sameLayout(operand.tensor(), result.tensor())
        && life.diesIn(operand, schedule.stepOfOp().get(unit.get(0)))
        && readOnlyAs(unit, position, operand);
  }

  /** Whether a storage is where no other rank has to have it too. */
  private boolean mayBeMoved(int storage) {
    return !merges.isSymmetric(storage) && merges.offset(storage) == 0;
  }

  /** Whether the ops up to a position, and only they, read a storage, and in this layout only. */
  private boolean readOnlyAs(ImmutableIntArray unit, int position, Value operand) {
    int rows = Rows.shared(ops(unit));
    for (int i = 0; i < unit.length(); i++) {
      var op = graph.graph().ops().get(unit.get(i));
      for (var value : op.operands()) {
        if (aliases.id(value) == aliases.id(operand)
            && (i > position
                || !aliases.isWhole(value)
                || !Rows.carries(op, value, rows)
                || !sameLayout(value.tensor(), operand.tensor()))) {
          return false;
        }
      }
    }
    return true;
  }

  private ImmutableList<Op> ops(ImmutableIntArray unit) {
    return unit.stream()
        .mapToObj(graph.graph().ops()::get)
        .collect(ImmutableList.toImmutableList());
  }

  private static boolean sameLayout(TensorType a, TensorType b) {
    return a.sizes().equals(b.sizes())
        && a.strides().equals(b.strides())
        && a.dtype().bytes() == b.dtype().bytes()
        && a.isDense();
  }

  /**
   * Lets ops write the pieces of a concatenation where they are joined: pieces without other later
   * readers become parts of the result. All of the result is in use from its first piece on, so
   * where that would take more memory, the pieces are copied.
   *
   * @param symmetricToo whether a symmetric piece may move into the result, which all ranks must do
   *     alike
   */
  void mergeConcatenations(boolean symmetricToo) {
    boolean merged = false;
    for (int i = 0; i < graph.graph().ops().size(); i++) {
      var op = graph.graph().ops().get(i);
      if (schedule.stepOfOp().get(i) >= 0
          && op.def().has(OpTrait.CONCATENATION)
          && !fusion.isPassing(aliases.id(op.result()))) {
        merged |= mergePieces(op, i, symmetricToo);
      }
    }
    if (merged) {
      var apart = StorageMerges.apart(graph);
      merges = peakBytes() > life.peakBytes(apart.freeze()) ? apart : merges;
    }
  }

  /** {@return whether any piece became a part of the result} */
  private boolean mergePieces(Op op, int index, boolean symmetricToo) {
    int to = aliases.id(op.result());
    if (graph.arena(to).isExternal()) {
      return false;
    }
    boolean merged = false;
    var pieces = Concatenation.of(op);
    for (var piece : pieces) {
      int from = aliases.id(piece.value());
      if (piece.offset() % Alignment.VECTOR == 0
          && !graph.isGiven(from)
          && !graph.arena(from).isExternal()
          && (symmetricToo || !merges.isSymmetric(from))
          && aliases.isWhole(piece.value())
          && life.diesIn(piece.value(), schedule.stepOfOp().get(index))
          && pieces.stream().filter(p -> aliases.id(p.value()) == from).count() == 1) {
        merges.join(from, to, piece.offset());
        merged = true;
      }
    }
    return merged;
  }

  /** Lets collectives write what some ops join where these have it. */
  void mergeRows(RowPieces pieces, Collection<Integer> ops) {
    ops.forEach(op -> pieces.join(op, merges));
  }

  private void merge(Value operand, Value result) {
    merges.join(aliases.id(result), aliases.id(operand), 0);
  }

  /**
   * Has what the rank brings to all_gathers written where their results have it, and leaves what it
   * gets from reduce_scatters where their operands have it. Each takes a share's memory less while
   * the collective runs, but the whole's for longer: so only if it lowers the peak, either that of
   * all such collectives or that of those next to what makes, or uses, the share.
   */
  void mergeShares(PassContext context) {
    var shares = new ShardsInPlace(graph, schedule, life, context);
    if (shares.isEmpty()) {
      return;
    }
    long before = peakBytes();
    var apart = merges.copy();
    for (boolean all : new boolean[] {true, false}) {
      if (shares.join(all, merges) && peakBytes() < before) {
        return;
      }
      merges = apart.copy();
    }
  }
}
