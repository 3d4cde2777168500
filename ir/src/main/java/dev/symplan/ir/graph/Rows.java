package dev.symplan.ir.graph;

import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.OpTrait;
import java.util.List;

/**
 * In which dimensions ops work by themselves on each part of their operands. A row is what remains
 * of a tensor when an index is chosen for each of some leading dimensions.
 */
public final class Rows {
  private Rows() {}

  /**
   * {@return the number of leading dimensions by which the op goes row by row: each row of its
   * results depends on that row of its operands alone, and on what has no rows}
   */
  public static int of(Op op) {
    if (op.def().has(OpTrait.ELEMENTWISE)) {
      return op.results().getFirst().type() instanceof TensorType type ? type.rank() : 0;
    }
    if (!op.def().has(OpTrait.ROWWISE) || !op.def().schema().hasParam("dim")) {
      return 0;
    }
    int rank = mainOperand(op);
    if (rank == 0) {
      return 0;
    }
    return switch (op.arg("dim")) {
      case Arg.Int(long dim) -> leading(dim, rank);
      case Arg.Seq(var items) ->
          items.stream()
              .mapToInt(item -> item instanceof Arg.Int(long dim) ? leading(dim, rank) : 0)
              .min()
              .orElse(0);
      case Arg.Ref _, Arg.Literal _ -> 0;
    };
  }

  private static int leading(long dim, int rank) {
    return Math.max(0, Math.toIntExact(dim < 0 ? dim + rank : dim));
  }

  /** The rank of the operands that the {@code dim} of a row-wise op counts in. */
  private static int mainOperand(Op op) {
    var operands = op.args().getFirst().operands();
    int rank = operands.isEmpty() ? 0 : rank(operands.getFirst());
    return operands.stream().allMatch(value -> rank(value) == rank) ? rank : 0;
  }

  private static int rank(Value value) {
    return value.type() instanceof TensorType type ? type.rank() : 0;
  }

  /**
   * {@return the number of leading dimensions that the results of all ops have in common and that
   * all ops go by}
   */
  public static int shared(List<Op> ops) {
    int shared = Integer.MAX_VALUE;
    for (var op : ops) {
      shared = shared(shared, ops.getFirst(), op);
    }
    return shared;
  }

  /**
   * {@return the same for some ops and one more}
   *
   * @param shared that of the others
   * @param first one of the others
   */
  public static int shared(int shared, Op first, Op next) {
    int rows = Math.min(shared, of(next));
    for (var result : next.results()) {
      if (result.isTensor()) {
        rows =
            first.results().getFirst().type() instanceof TensorType type
                ? common(type, result.tensor(), rows)
                : 0;
      }
    }
    return rows;
  }

  private static int common(TensorType a, TensorType b, int most) {
    int count = 0;
    while (count < Math.min(most, Math.min(a.rank(), b.rank())) && a.size(count) == b.size(count)) {
      count++;
    }
    return count;
  }

  /**
   * {@return whether an operand has the first {@code rows} dimensions of the op's results, so that
   * the op reads one of its rows for each of theirs; if not, it may read all of it each time}
   */
  public static boolean carries(Op op, Value operand, int rows) {
    if (!(operand.type() instanceof TensorType type)
        || !(op.results().getFirst().type() instanceof TensorType result)) {
      return false;
    }
    int rank = op.def().has(OpTrait.ELEMENTWISE) ? result.rank() : mainOperand(op);
    return type.rank() == rank && common(type, result, rows) == rows;
  }
}
