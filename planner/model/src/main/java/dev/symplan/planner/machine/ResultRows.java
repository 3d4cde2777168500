package dev.symplan.planner.machine;

import dev.symplan.ir.TensorType;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveCall;
import java.util.Optional;
import java.util.stream.IntStream;

/** The rows, with other memory between them, that a variant can write a result in. */
public final class ResultRows {
  /** The most rows, so that each can be checked by itself. */
  public static final int MOST = 1 << 17;

  private ResultRows() {}

  /**
   * {@return whether a variant can write a result so}
   *
   * <p>All that one rank sends is rows at one distance. Where the operand is rows, too, those of
   * one end are whole rows of the other. What nobody sends is filled with zeros in one run.
   *
   * @param collective its op
   * @param tensor which of its results
   * @param result that one, as it lies in memory
   * @param ranks of its group
   */
  public static boolean allow(
      VariantSpec spec, Op collective, int tensor, TensorType result, int ranks) {
    if (!spec.writesRows()) {
      return false;
    }
    var call = collective.collective().orElseThrow();
    var written = written(call, result, ranks).rowsApart();
    var read = read(call, call.operands().get(tensor).tensor(), ranks).rowsApart();
    return written.map(TensorType.Rows::areEven).orElse(true)
        && (written.isEmpty()
            || read.isEmpty()
            || divide(written.get().elements(), read.get().elements()))
        && isFull(call, ranks);
  }

  /** What a rank gets from each of the others. */
  private static TensorType written(CollectiveCall call, TensorType result, int ranks) {
    return switch (call.kind()) {
      case ALL_GATHER, ALL_TO_ALL -> slice(result, call.sliceDims().result(), ranks);
      case ALL_REDUCE, REDUCE_SCATTER, BROADCAST, COLLECTIVE_PERMUTE, CUSTOM -> result;
    };
  }

  /** What a rank sends to each of the others. */
  private static TensorType read(CollectiveCall call, TensorType operand, int ranks) {
    return switch (call.kind()) {
      case REDUCE_SCATTER, ALL_TO_ALL -> slice(operand, call.sliceDims().operand(), ranks);
      case ALL_REDUCE, ALL_GATHER, BROADCAST, COLLECTIVE_PERMUTE, CUSTOM -> operand;
    };
  }

  private static TensorType slice(TensorType type, int dim, int ranks) {
    return dim < type.rank() ? type.part(dim, Math.max(1, type.size(dim) / ranks)) : type;
  }

  private static boolean divide(long a, long b) {
    return a % b == 0 || b % a == 0;
  }

  /** Whether each rank gets something. */
  private static boolean isFull(CollectiveCall call, int ranks) {
    return switch (call.kind()) {
      case COLLECTIVE_PERMUTE ->
          IntStream.range(0, ranks).allMatch(i -> call.permutation().sourceOf(i).isPresent());
      case ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST, CUSTOM -> true;
    };
  }

  /**
   * {@return a contiguous tensor as rows with other memory between them, if it is of such rows}
   *
   * @param bytes of a row
   * @param pitch bytes from the beginning of one row to that of the next
   */
  public static Optional<TensorType> lying(TensorType type, long bytes, long pitch) {
    int item = type.dtype().bytes();
    return bytes % item == 0
            && pitch % item == 0
            && pitch >= bytes
            && type.bytes() / MOST < bytes
            && type.isOfRows(bytes / item)
        ? Optional.of(type.withRowsApart(bytes / item, pitch / item))
        : Optional.empty();
  }
}
