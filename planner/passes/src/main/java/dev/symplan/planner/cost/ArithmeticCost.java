package dev.symplan.planner.cost;

import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.aten.ConvolutionOps;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.machine.Compute;
import dev.symplan.planner.machine.GeneratedAttention;
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

  /**
   * Gradients that are the same in every run: several kernels, most of whose time is for the score
   * itself, whatever the features are. Fitted to the times of an H100 in {@code
   * docs/figures/attention-h100.txt}.
   */
  private static final double GRADIENT_START_MICROS = 17;

  private static final double GRADIENT_FEATURES = 280;

  private static final double GRADIENT_RATIO = 2;

  /** Such gradients where numbers are added to the scores, against the forward op. */
  private static final double BIASED_GRADIENT = 6;

  /** TFLOP/s of the kernel for attention that neither cuDNN nor our tiles compute. */
  private static final double SLOW_ATTENTION = 0.9;

  /** The rows of queries of our tiles, and their rate against that of f32 products. */
  private static final long GENERATED_TILE = 64;

  private static final double GENERATED_RATE = 0.75;

  /** The same where blocks share the keys of few rows, whose scores are added up across lanes. */
  private static final double FEW_ROWS_RATE = 0.3;

  private ArithmeticCost() {}

  static double micros(Op op, Compute compute) {
    if (op.flops() == 0) {
      return 0;
    }
    return AttentionOps.is(op.def())
        ? attention(op, compute)
        : ConvolutionOps.is(op.def()) ? ConvolutionCost.micros(op, compute) : product(op, compute);
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

  private static double attention(Op op, Compute compute) {
    var query = op.call().tensor("query");
    long rows = query.size(query.rank() - 2);
    long features = query.size(query.rank() - 1);
    long heads = query.numel() / Math.max(1, rows * features);
    boolean library =
        LibraryAttention.isNarrow(query.dtype()) && LibraryAttention.hasFeatures(features);
    if (library) {
      return !AttentionOps.isBackward(op.def())
          ? byLibrary(op, rows, Math.max(features, MIN_FEATURES), heads, compute)
          : hasBias(op)
              ? BIASED_GRADIENT
                  * byLibrary(op, rows, Math.max(features, MIN_FEATURES), heads, compute)
              : GRADIENT_START_MICROS
                  + byLibrary(
                      op, rows, GRADIENT_FEATURES + GRADIENT_RATIO * features, heads, compute);
    }
    boolean generated =
        !AttentionOps.isBackward(op.def())
            && GeneratedAttention.suits(query, op.call().tensor("key"), op.call().tensor("value"));
    return generated ? generated(op, rows, heads, compute) : op.flops() / (1e6 * SLOW_ATTENTION);
  }

  /** Multiprocessors take rows of queries in turns, those of a causal mask with unequal work. */
  private static double byLibrary(Op op, long rows, double features, long heads, Compute compute) {
    var key = op.call().tensor("key");
    long tiles = Math.max(1, heads * Math.ceilDiv(rows, TILE));
    double turns = Math.ceilDiv(tiles, compute.multiprocessors());
    double scores = (double) Math.min(rows, TILE) * key.size(key.rank() - 2);
    double micros =
        turns * scores * 4 * features * compute.multiprocessors() / (1e6 * compute.matrixRate());
    return isCausal(op)
        ? micros * (0.5 + 0.5 * Math.min(1, 2.0 * compute.multiprocessors() / tiles))
        : micros;
  }

  /** The tiles of causal rows with the most work come first, so that turns end together. */
  private static double generated(Op op, long rows, long heads, Compute compute) {
    if (GeneratedAttention.hasFewRows(op.call().tensor("query"))) {
      return op.flops() / (1e6 * FEW_ROWS_RATE * compute.matrixF32Rate());
    }
    long tiles = Math.max(1, heads * Math.ceilDiv(rows, GENERATED_TILE));
    double turns = Math.ceilDiv(tiles, compute.multiprocessors());
    double used = tiles / (turns * compute.multiprocessors());
    double micros = op.flops() / (1e6 * GENERATED_RATE * compute.matrixF32Rate() * used);
    return isCausal(op)
        ? micros * Math.max(1 / turns, 0.5 + 0.25 * compute.multiprocessors() / tiles)
        : micros;
  }

  private static boolean hasBias(Op op) {
    return op.def().schema().hasParam("attn_bias") && op.call().has("attn_bias");
  }

  /** Only the caller may know whether it is. */
  private static boolean isCausal(Op op) {
    return op.call().arg("is_causal").integer().orElse(0L) != 0;
  }
}
