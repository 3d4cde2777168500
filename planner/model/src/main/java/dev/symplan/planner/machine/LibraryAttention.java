package dev.symplan.planner.machine;

import com.google.common.collect.ImmutableList;
import com.google.common.math.LongMath;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Decides by types which attention may go to cuDNN: floats of 16 bits, rows that all begin at a
 * multiple of 16 bytes, and a positive scale, because its kernels take the largest score before
 * they scale. If cuDNN has no kernel, this shows when a session opens.
 */
public final class LibraryAttention {

  /** cuDNN's kernels count features in eights, and have registers for so many. */
  private static final int FEATURES = 8;

  private static final int MAX_FEATURES = 256;

  /**
   * The scores of all heads for which gradients may go to cuDNN. They need workspace for each
   * score, and backends give 256 MiB: that was enough for so many with cuDNN 9.19, but not for
   * twice as many.
   */
  public static final long MAX_GRADIENT_SCORES = 1L << 26;

  /**
   * The elements of the gradients of keys and values that may go to cuDNN before those of heads
   * that share one are added up: they are in its workspace, too.
   */
  public static final long MAX_UNSUMMED_GRADIENTS = 1L << 25;

  private LibraryAttention() {}

  /**
   * {@return how many heads of keys may go to cuDNN at once for their gradients} The last two
   * dimensions are rows and features.
   *
   * @param group the heads of queries that share one of keys
   * @param scores of all heads together
   */
  public static long gradientHeads(
      long group, TensorType query, TensorType key, TensorType value, long scores) {
    long byScores = scores / product(group, scores(query, key));
    return group == 1
        ? byScores
        : Math.min(byScores, MAX_UNSUMMED_GRADIENTS / product(group, gradients(key, value)));
  }

  /** {@return how many heads of queries may go to cuDNN at once with the one that they share} */
  public static long gradientGroup(
      TensorType query, TensorType key, TensorType value, long scores) {
    long byScores = scores / scores(query, key);
    return Math.min(byScores, Math.max(1, MAX_UNSUMMED_GRADIENTS / gradients(key, value)));
  }

  private static long scores(TensorType query, TensorType key) {
    return product(query.size(query.rank() - 2), key.size(key.rank() - 2));
  }

  private static long gradients(TensorType key, TensorType value) {
    long features = key.size(key.rank() - 1) + value.size(value.rank() - 1);
    return product(key.size(key.rank() - 2), features);
  }

  private static long product(long a, long b) {
    return Math.max(1, LongMath.saturatedMultiply(a, b));
  }

  /**
   * {@return whether cuDNN may have a kernel} All tensors have four dimensions.
   *
   * @param others the value, results and gradients: all tensors with features but query and key
   * @param logs the logarithms of sums, a number for each row
   */
  public static boolean suits(
      TensorType query,
      TensorType key,
      ImmutableList<TensorType> others,
      Optional<TensorType> bias,
      Optional<TensorType> logs,
      double scale) {
    return isNarrow(query.dtype())
        && scale > 0
        && query.numel() > 0
        && key.numel() > 0
        && query.size(1) % key.size(1) == 0
        && Stream.concat(Stream.of(query, key), others.stream())
            .allMatch(type -> type.dtype() == query.dtype() && hasAlignedRows(type))
        && Stream.concat(Stream.of(query), others.stream())
            .allMatch(type -> hasFeatures(type.size(3)))
        && bias.stream().allMatch(type -> isBias(type, query, key))
        && logs.stream().allMatch(type -> type.dtype() == DType.F32 && type.isContiguous())
        && logs.stream().allMatch(type -> type.numel() == query.numel() / query.size(3));
  }

  /** {@return whether cuDNN's attention knows the element type} */
  public static boolean isNarrow(DType dtype) {
    return dtype == DType.F16 || dtype == DType.BF16;
  }

  /** {@return whether cuDNN's attention knows the number of features} */
  public static boolean hasFeatures(long features) {
    return features % FEATURES == 0 && features <= MAX_FEATURES;
  }

  /** {@return whether cuDNN can add this to scores: it broadcasts over batches and heads only} */
  public static boolean isBias(TensorType bias, TensorType query, TensorType key) {
    return (bias.dtype() == query.dtype() || bias.dtype() == DType.F32)
        && bias.size(2) == query.size(2)
        && bias.size(3) == key.size(2)
        && hasAlignedRows(bias);
  }

  /** {@return whether all rows of a tensor with four dimensions begin at a multiple of 16 bytes} */
  public static boolean hasAlignedRows(TensorType type) {
    if (type.stride(3) != 1 && type.size(3) != 1) {
      return false;
    }
    for (int dim = 0; dim < 3; dim++) {
      if (type.size(dim) > 1
          && (type.stride(dim) <= 0
              || type.stride(dim) * type.dtype().bytes() % Alignment.VECTOR != 0)) {
        return false;
      }
    }
    return true;
  }
}
