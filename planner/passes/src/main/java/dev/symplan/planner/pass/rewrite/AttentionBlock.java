package dev.symplan.planner.pass.rewrite;

import dev.symplan.ir.Value;
import dev.symplan.planner.pass.rewrite.LowerAttention.Bounds;
import java.util.ArrayList;
import java.util.List;

/**
 * A part of attention whose scores are in memory at once: some units, or some rows of one.
 *
 * @param sizes of all of it
 * @param firstUnit the first unit, {@code lastUnit} the one after the last
 * @param firstRow the first row of queries, {@code lastRow} the one after the last
 * @param keys how many keys the rows see, from the first on
 */
record AttentionBlock(
    AttentionSizes sizes, long firstUnit, long lastUnit, long firstRow, long lastRow, long keys) {
  private static final int MAX_BLOCKS = 256;

  /** More leave out more of what is hidden, but their products are too small for a GPU. */
  private static final int MAX_CAUSAL_PARTS = 4;

  long units() {
    return lastUnit - firstUnit;
  }

  long rows() {
    return lastRow - firstRow;
  }

  /**
   * {@return the blocks of a unit's rows, for each of the groups of units}
   *
   * @param elementBytes of a score
   * @param cutsBias whether heads or batches have a bias of their own
   */
  static List<List<AttentionBlock>> of(
      AttentionSizes sizes, Bounds bounds, int elementBytes, boolean causal, boolean cutsBias) {
    long heads = sizes.heads();
    long units = sizes.units();
    long rows = sizes.rows();
    long keys = sizes.keys();
    long bytes = elementBytes * sizes.group() * keys;
    long most = Math.max(bounds.block(), units * rows * bytes / MAX_BLOCKS);
    long parts = causal ? Math.clamp(rows / bounds.causalRows(), 1, MAX_CAUSAL_PARTS) : 1;
    long height = Math.clamp(most / bytes, 1, Math.ceilDiv(rows, parts));
    long count = Math.clamp(most / (bytes * height), 1, units);
    // A bias of each head or batch is cut into parts of a batch, or into whole ones.
    while (cutsBias && heads % count != 0 && count % heads != 0) {
      count--;
    }
    var all = new ArrayList<List<AttentionBlock>>();
    for (long unit = 0; unit < units; unit += count) {
      var own = new ArrayList<AttentionBlock>();
      for (long row = 0; row < rows; row += height) {
        long lastRow = Math.min(rows, row + height);
        long seen = parts > 1 ? Math.min(keys, lastRow) : keys;
        own.add(new AttentionBlock(sizes, unit, Math.min(units, unit + count), row, lastRow, seen));
      }
      all.add(own);
    }
    return all;
  }

  /** The rows of a block, those of a group one after another: [units, group · rows, features]. */
  Value rowsOf(TensorEmitter on, Value whole) {
    var ofUnits = on.slice(whole, 0, firstUnit, lastUnit);
    var own = on.slice(ofUnits, 2, firstRow, lastRow);
    return on.reshape(own, units(), sizes.group() * rows(), TensorEmitter.lastSize(whole));
  }

  /** The keys that a block sees: [units, keys, features]. */
  Value keysOf(TensorEmitter on, Value whole) {
    var ofUnits = on.slice(whole, 0, firstUnit, lastUnit);
    var own = on.slice(ofUnits, 2, 0, keys);
    return on.reshape(own, units(), keys, TensorEmitter.lastSize(whole));
  }

  /** A number for each row of a block, [units · group, rows, 1]. */
  Value apart(TensorEmitter on, Value whole) {
    var ofUnits = on.slice(whole, 0, firstUnit, lastUnit);
    var own = on.slice(ofUnits, 2, firstRow, lastRow);
    return on.reshape(own, units() * sizes.group(), rows(), 1);
  }

  /** [units, group · rows, keys] as [units · group, rows, keys]. */
  Value separated(TensorEmitter on, Value value) {
    return on.reshape(value, units() * sizes.group(), rows(), keys);
  }

  /** [units · group, rows, keys] as [units, group · rows, keys]. */
  Value joined(TensorEmitter on, Value value) {
    return on.reshape(value, units(), sizes.group() * rows(), keys);
  }
}
