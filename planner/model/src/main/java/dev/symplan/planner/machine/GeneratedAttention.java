package dev.symplan.planner.machine;

import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.stream.Stream;

/**
 * Decides by types which attention has a fast kernel of ours. It adds up in f32 on the ordinary
 * cores, and never keeps scores in memory. A block has a tile of rows, or some keys of few rows.
 */
public final class GeneratedAttention {

  /** The results of a tile's rows, of so many features each, are in registers. */
  private static final long MAX_FEATURES = 256;

  /** With fewer rows, most of a tile would be empty, and most of a GPU idle. */
  private static final long MIN_ROWS = 32;

  /** Numbers of rows and keys are 32-bit integers, and remain so when tiles are added. */
  private static final long MAX_ROWS = 1L << 30;

  private GeneratedAttention() {}

  /** {@return whether there is a kernel} The last two dimensions are rows and features. */
  public static boolean suits(TensorType query, TensorType key, TensorType value) {
    return Stream.of(query, key, value).allMatch(GeneratedAttention::suits)
        && Math.max(rows(query), rows(key)) <= MAX_ROWS
        // There are more rows than blocks.
        && query.numel() / features(query) <= Integer.MAX_VALUE;
  }

  /** {@return whether blocks share keys rather than rows} */
  public static boolean hasFewRows(TensorType query) {
    return rows(query) < MIN_ROWS;
  }

  private static boolean suits(TensorType type) {
    return (type.dtype() == DType.F32 || LibraryAttention.isNarrow(type.dtype()))
        && type.numel() > 0
        && features(type) <= MAX_FEATURES;
  }

  private static long rows(TensorType type) {
    return type.size(type.rank() - 2);
  }

  private static long features(TensorType type) {
    return type.size(type.rank() - 1);
  }
}
