package dev.symplan.planner.pass.analysis;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.machine.Alignment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;

/** The parts of a concatenation's result that its operands can be written into. */
public final class Concatenation {

  /**
   * One operand.
   *
   * @param offset where its part of the result begins, in bytes
   */
  public record Piece(Value value, long offset) {}

  /**
   * One operand of which the result has several rows, with those of other operands between them.
   *
   * @param offset where the first row begins in the result, in bytes
   * @param bytes of a row
   * @param pitch bytes from the beginning of a row to that of the next
   */
  public record Rows(Value value, long offset, long bytes, long pitch) {
    /** {@return whether rows begin at multiples of so many bytes, and end there} */
    public boolean divideInto(int unit) {
      return offset % unit == 0 && bytes % unit == 0 && pitch % unit == 0;
    }
  }

  private Concatenation() {}

  /**
   * {@return the operands in their order; none if parts of the result are not one stretch of memory
   * each, or hold other elements than the operands}
   */
  public static ImmutableList<Piece> of(Op op) {
    var result = op.result().tensor();
    var pieces = ImmutableList.<Piece>builder();
    long offset = 0;
    for (var value : values(op)) {
      if (value.tensor().dtype() != result.dtype() || !value.tensor().isContiguous()) {
        return ImmutableList.of();
      }
      pieces.add(new Piece(value, offset));
      offset += value.tensor().bytes();
    }
    return result.isContiguous() && isInOneStretch(op) ? pieces.build() : ImmutableList.of();
  }

  private static List<Value> values(Op op) {
    var values = new ArrayList<>(op.args().getFirst().operands());
    // PyTorch lets tensors of shape [0] pass, whatever the others' shapes are.
    values.removeIf(value -> value.tensor().numel() == 0);
    return values;
  }

  /**
   * {@return the contiguous operands that are rows of the result, in their order; none if each is
   * one stretch of memory there, or the result holds other elements than the operands}
   */
  public static ImmutableList<Rows> inRows(Op op) {
    var result = op.result().tensor();
    long count = rows(op);
    if (count < 2 || !result.isContiguous()) {
      return ImmutableList.of();
    }
    var rows = ImmutableList.<Rows>builder();
    long offset = 0;
    for (var value : values(op)) {
      if (value.tensor().dtype() != result.dtype()) {
        return ImmutableList.of();
      }
      long bytes = value.tensor().bytes() / count;
      if (value.tensor().isContiguous()) {
        rows.add(new Rows(value, offset, bytes, result.bytes() / count));
      }
      offset += bytes;
    }
    return rows.build();
  }

  /**
   * {@return whether all pieces of an op can be written where it joins them, and have no later
   * readers: then it takes no time}
   *
   * @param index the op's position in the graph
   */
  static boolean needsNoCopy(Op op, int index, Analyses analyses) {
    if (!op.def().has(OpTrait.CONCATENATION)) {
      return false;
    }
    var pieces = of(op);
    var aliases = analyses.aliases();
    var storages = new HashSet<Integer>();
    return !pieces.isEmpty()
        && pieces.stream()
            .allMatch(
                piece ->
                    piece.offset() % Alignment.VECTOR == 0
                        && aliases.isWhole(piece.value())
                        && analyses.uses().lastOpOrCaller(aliases.id(piece.value())) == index
                        && storages.add(aliases.id(piece.value())));
  }

  /** Whether all dimensions in front of the joined one have a single element. */
  private static boolean isInOneStretch(Op op) {
    return rows(op) == 1;
  }

  /** The elements of all dimensions in front of the joined one; 0 if that is not known. */
  private static long rows(Op op) {
    var result = op.result().tensor();
    if (!(op.arg("dim") instanceof Arg.Int(long dim))) {
      return 0;
    }
    long rows = 1;
    for (int i = 0; i < (dim < 0 ? dim + result.rank() : dim); i++) {
      rows *= result.size(i);
    }
    return rows;
  }
}
