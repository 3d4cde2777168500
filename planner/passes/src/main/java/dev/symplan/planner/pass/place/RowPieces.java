package dev.symplan.planner.pass.place;

import com.google.common.base.Suppliers;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSetMultimap;
import com.google.common.collect.Iterables;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.ResultRows;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Concatenation;
import dev.symplan.planner.pass.select.Realized;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Step;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.OptionalInt;
import java.util.function.Supplier;

/**
 * The results of collectives that can lie where a later op joins them along a dimension that is not
 * the first: in rows, between those of the other pieces. Only the collective writes such a piece,
 * and only that op reads it, so that no other op meets rows that are apart. Where the collective
 * can reduce in place, an op that can leave memory between rows may write its operand there, too.
 */
final class RowPieces {
  /** Peers do not store shorter rows, in bytes: links are slow with them. */
  private static final long LEAST_REMOTE = 128;

  /** One of the results of a collective, by its number. */
  private record Made(int collective, int tensor) {}

  /**
   * One of them.
   *
   * @param op the index of the op that joins it with others
   * @param part its storage
   * @param operand that of what the collective reduces there; empty if that lies elsewhere
   * @param whole the storage of what is joined
   */
  private record Piece(int op, int part, OptionalInt operand, int whole, Concatenation.Rows rows) {}

  private final Realized graph;
  private final Schedule schedule;
  private final Liveness life;
  private final PassContext context;
  private final boolean alike;
  private final Map<Integer, Made> made = new HashMap<>();
  private final Supplier<ImmutableSetMultimap<Integer, Integer>> users =
      Suppliers.memoize(this::users);
  private final ImmutableList<Piece> found;

  /**
   * Finds those of a rank class.
   *
   * @param alike whether there is no other, so that all ranks do alike what they must
   */
  RowPieces(Realized graph, Schedule schedule, Liveness life, PassContext context, boolean alike) {
    this.graph = graph;
    this.schedule = schedule;
    this.life = life;
    this.context = context;
    this.alike = alike;
    for (int k = 0; k < graph.collectives().size(); k++) {
      var results = graph.collectives().get(k).results();
      if (graph.spec(k).writesRows() && (alike || !graph.spec(k).needsSymmetricResult())) {
        for (int i = 0; i < results.size(); i++) {
          made.put(id(results.get(i)), new Made(k, i));
        }
      }
    }
    var pieces = ImmutableList.<Piece>builder();
    for (int i = 0; i < graph.graph().ops().size() && !made.isEmpty(); i++) {
      add(pieces, graph.graph().ops().get(i), i);
    }
    this.found = pieces.build();
  }

  private int id(Value value) {
    return graph.aliases().id(value);
  }

  private void add(ImmutableList.Builder<Piece> pieces, Op op, int index) {
    int step = schedule.stepOfOp().get(index);
    if (!op.def().has(OpTrait.CONCATENATION)
        || step < 0
        || !(schedule.steps().get(step) instanceof Step.Compute)
        || !isOurs(id(op.result()))) {
      return;
    }
    for (var rows : Concatenation.inRows(op)) {
      int part = id(rows.value());
      if (made.containsKey(part)
          && isOurs(part)
          && rows.divideInto(Alignment.VECTOR)
          && graph.aliases().isWhole(rows.value())
          && life.diesIn(rows.value(), step)
          && isOnlyRead(part, op, index, rows.bytes())
          && canBeWritten(made.get(part), rows)) {
        var operand = operand(made.get(part), rows.bytes());
        pieces.add(new Piece(index, part, operand, id(op.result()), rows));
      }
    }
  }

  /** The storage of what a collective may reduce where its result is. */
  private OptionalInt operand(Made by, long row) {
    var collective = graph.collectives().get(by.collective());
    var operand = collective.operands().get(by.tensor());
    var storage = graph.aliases().of(operand);
    boolean fits =
        alike
            && collective.operands().size() == 1
            && graph.spec(by.collective()).allowsInPlace()
            && canWriteRows(storage)
            && graph.arena(storage.id()) == graph.arena(id(collective.results().getFirst()))
            && graph.aliases().isWhole(operand)
            && isOfRows(operand.tensor(), row)
            && isOfRows(storage.value().tensor(), row)
            && life.diesIn(operand, schedule.startStep().get(by.collective()))
            && users.get().get(storage.id()).stream()
                .allMatch(
                    user ->
                        user == storage.def() || user == collective.index() || isRows(user, row));
    return fits ? OptionalInt.of(storage.id()) : OptionalInt.empty();
  }

  /** Whether an op writes a storage in a step of its own, and can leave memory between rows. */
  private boolean canWriteRows(Aliases.Storage storage) {
    return !storage.isInput()
        && graph.graph().ops().get(storage.def()).def().has(OpTrait.ROWS_APART)
        && schedule.stepOfOp().get(storage.def()) >= 0
        && schedule.steps().get(schedule.stepOfOp().get(storage.def())) instanceof Step.Compute;
  }

  private boolean isOurs(int storage) {
    return graph.arena(storage) == ArenaKind.LOCAL || graph.arena(storage) == ArenaKind.SYMMETRIC;
  }

  /** Whether nothing but an op, and views in which rows are still rows, reads a piece, and once. */
  private boolean isOnlyRead(int part, Op op, int index, long row) {
    int maker = graph.aliases().storage(part).def();
    return op.operands().stream().filter(value -> id(value) == part).count() == 1
        && users.get().get(part).stream()
            .allMatch(user -> user == maker || user == index || isRows(user, row));
  }

  private boolean isRows(int op, long row) {
    return graph.aliases().isView(op)
        && graph.graph().ops().get(op).results().stream()
            .allMatch(view -> graph.aliases().isWhole(view) && isOfRows(view.tensor(), row));
  }

  private static boolean isOfRows(TensorType type, long row) {
    return type.isOfRows(row / type.dtype().bytes());
  }

  private boolean canBeWritten(Made by, Concatenation.Rows rows) {
    var collective = graph.collectives().get(by.collective());
    var spec = graph.spec(by.collective());
    return (rows.bytes() >= LEAST_REMOTE || !spec.needsSymmetricResult())
        && ResultRows.lying(
                collective.results().get(by.tensor()).tensor(), rows.bytes(), rows.pitch())
            .filter(
                type ->
                    ResultRows.allow(
                        spec,
                        collective.op(),
                        by.tensor(),
                        type,
                        context.groupSize(collective.group())))
            .isPresent();
  }

  /** By storage of an operand or a result, all ops that have to do with it. */
  private ImmutableSetMultimap<Integer, Integer> users() {
    var ops = graph.graph().ops();
    var wanted = new HashSet<Integer>();
    for (var one : made.values()) {
      var collective = graph.collectives().get(one.collective());
      collective.operands().forEach(operand -> wanted.add(id(operand)));
      collective.results().forEach(result -> wanted.add(id(result)));
    }
    var all = ImmutableSetMultimap.<Integer, Integer>builder();
    for (int i = 0; i < ops.size(); i++) {
      for (var value : Iterables.concat(ops.get(i).operands(), ops.get(i).results())) {
        if (value.isTensor() && wanted.contains(id(value))) {
          all.put(id(value), i);
        }
      }
    }
    return all.build();
  }

  /** {@return the ops that join any, by their indices} */
  ImmutableList<Integer> ops() {
    return found.stream().map(Piece::op).distinct().collect(ImmutableList.toImmutableList());
  }

  /** Puts the pieces that an op joins where its result has them. */
  void join(int op, StorageMerges merges) {
    for (var piece : found) {
      if (piece.op() == op && !merges.isJoined(piece.part())) {
        merges.joinRows(piece.part(), piece.whole(), piece.rows());
        piece
            .operand()
            .ifPresent(
                operand -> {
                  if (!merges.isJoined(operand)) {
                    merges.joinRows(operand, piece.whole(), piece.rows());
                  }
                });
      }
    }
  }
}
