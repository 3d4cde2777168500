package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Analyses;
import java.util.Optional;

/** The ops of one graph that make values, and those that read and write their storages. */
final class DataFlow {
  /** No op. */
  static final int NONE = -1;

  private final Analyses graph;
  private final Aliases aliases;
  private final ImmutableList<Op> ops;
  private final ImmutableIntArray makers;

  DataFlow(Analyses graph) {
    this.graph = graph;
    this.aliases = graph.aliases();
    this.ops = graph.graph().ops();
    this.makers = graph.makers();
  }

  /**
   * {@return the only op that runs and takes a tensor in a storage, {@link #NONE} if several do or
   * the caller does}
   */
  int onlyReader(int storage) {
    int reader = graph.uses().lastOp(storage);
    int maker = aliases.storage(storage).def();
    if (graph.uses().lastOpOrCaller(storage) != reader
        || reader <= maker
        || !aliases.families().isAlone(storage)) {
      return NONE;
    }
    for (int i = maker + 1; i < reader; i++) {
      if (aliases.runs(i) && reads(i, storage)) {
        return NONE;
      }
    }
    return reader;
  }

  /** {@return whether an op takes a tensor in a storage} */
  boolean reads(int op, int storage) {
    return ops.get(op).operands().stream().anyMatch(value -> aliases.id(value) == storage);
  }

  /** {@return whether one of some ops may write what the others know} */
  boolean mayWrite(int from, int to) {
    return ops.subList(from, to).stream()
        .anyMatch(
            op ->
                op.def().rule().isEmpty()
                    || op.def().schema().mutates()
                    || op.def().has(OpTrait.SIDE_EFFECT)
                    || op.def().has(OpTrait.OPAQUE));
  }

  /** {@return the op that gives a value; {@link #NONE} for an input} */
  int maker(Value value) {
    return makers.get(value.id());
  }

  /**
   * {@return the value that a view shows; empty for other values, and for a view whose offset
   * counts from the storage: it would show something else of what takes that value's place}
   */
  Optional<Value> base(Value view) {
    int maker = maker(view);
    if (maker == NONE || !aliases.isView(maker) || aliases.countsFromStorage(view)) {
      return Optional.empty();
    }
    int storage = aliases.id(view);
    return ops.get(maker).operands().stream()
        .filter(operand -> aliases.id(operand) == storage)
        .findFirst();
  }
}
