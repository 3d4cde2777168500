package dev.symplan.planner.cost;

import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.machine.Compute;
import dev.symplan.planner.machine.LibraryAttention;

/**
 * The computing time of products and attention, in microseconds: from their operations and the
 * rates of the machine, which are lower if a result has too few tiles for all multiprocessors. The
 * constants were fitted to the times of an H200 in {@code docs/performance.md}.
 */
final class ArithmeticCost {

  /** Rows and columns of a result that one multiprocessor computes. */
  private static final long TILE = 128;

  /** With fewer features, the exponentials of attention take longer than its products. */
  private static final long MIN_FEATURES = 91;

  /** Gradients that are the same in every run, against the forward op. */
  private static final double BACKWARD = 6;

  /** TFLOP/s of the kernel for attention that cuDNN does not take. */
  private static final double SLOW_ATTENTION = 0.9;

  private ArithmeticCost() {}

  static double micros(Op op, Compute compute) {
    if (op.flops() == 0) {
      return 0;
    }
    return AttentionOps.is(op.def()) ? attention(op, compute) : product(op, compute);
  }

  /**
   * Smaller tiles than the usual one, or sums that are divided among several, keep idle
   * multiprocessors busy in part: with the square root of their share.
   */
  private static double product(Op op, Compute compute) {
    var wide = op.operands().stream().anyMatch(value -> value.isTensor() && isWide(value.tensor()));
    double rate = wide ? compute.matrixF32Rate() : compute.matrixRate();
    double used = (double) tiles(op.results().getFirst().tensor()) / compute.multiprocessors();
    return op.flops() / (1e6 * rate * Math.min(1, Math.sqrt(used)));
  }

  private static boolean isWide(TensorType type) {
    return type.dtype() == DType.F32 || type.dtype() == DType.F64;
  }

  private static long tiles(TensorType result) {
    int rank = result.rank();
    long rows = rank < 2 ? 1 : result.size(rank - 2);
    long columns = rank < 1 ? 1 : result.size(rank - 1);
    long batches = Math.max(1, result.numel()) / Math.max(1, rows * columns);
    return Math.max(1, batches * Math.ceilDiv(rows, TILE) * Math.ceilDiv(columns, TILE));
  }

  /** Multiprocessors take rows of queries in turns, those of a causal mask with unequal work. */
  private static double attention(Op op, Compute compute) {
    var query = op.call().tensor("query");
    var key = op.call().tensor("key");
    if (!LibraryAttention.isNarrow(query.dtype())) {
      return op.flops() / (1e6 * SLOW_ATTENTION);
    }
    long rows = query.size(query.rank() - 2);
    long features = query.size(query.rank() - 1);
    long heads = query.numel() / Math.max(1, rows * features);
    long tiles = Math.max(1, heads * Math.ceilDiv(rows, TILE));
    double turns = Math.ceilDiv(tiles, compute.multiprocessors());
    double scores = (double) Math.min(rows, TILE) * key.size(key.rank() - 2);
    double micros =
        turns
            * scores
            * 4
            * Math.max(features, MIN_FEATURES)
            * compute.multiprocessors()
            / (1e6 * compute.matrixRate());
    // Only the caller may know whether it is.
    if (op.call().arg("is_causal").integer().orElse(0L) != 0) {
      micros *= 0.5 + 0.5 * Math.min(1, 2.0 * compute.multiprocessors() / tiles);
    }
    return AttentionOps.isBackward(op.def()) ? BACKWARD * micros : micros;
  }
}
