package dev.symplan.planner.pass.place;

import dev.symplan.planner.pass.analysis.Concatenation;
import dev.symplan.planner.pass.select.Realized;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Placement;
import java.util.Arrays;

/** Decides which storages lie in the memory of others: a forest, whose roots get memory. */
final class StorageMerges {
  private final int[] parent;

  /** Where a storage begins in its parent, in bytes. */
  private final long[] shift;

  /** Whether peers need a storage, or what takes its memory, at the same offset; for roots. */
  private final boolean[] symmetric;

  private final boolean[] joined;
  private final int[] shardOf;

  /** The bytes of a shard, or of a row. */
  private final long[] stride;

  /** From one row of a piece to the next, in bytes; 0 if it is not a piece in rows. */
  private final long[] pitch;

  private StorageMerges(
      int[] parent,
      long[] shift,
      boolean[] symmetric,
      boolean[] joined,
      int[] shardOf,
      long[] stride,
      long[] pitch) {
    this.parent = parent;
    this.shift = shift;
    this.symmetric = symmetric;
    this.joined = joined;
    this.shardOf = shardOf;
    this.stride = stride;
    this.pitch = pitch;
  }

  /** Every storage in memory of its own. */
  static StorageMerges apart(Realized graph) {
    int count = graph.aliases().count();
    var symmetric = new boolean[count];
    for (int storage = 0; storage < count; storage++) {
      symmetric[storage] = graph.arena(storage) == ArenaKind.SYMMETRIC;
    }
    var merges =
        new StorageMerges(
            new int[count],
            new long[count],
            symmetric,
            new boolean[count],
            new int[count],
            new long[count],
            new long[count]);
    Arrays.setAll(merges.parent, i -> i);
    Arrays.fill(merges.shardOf, Placement.NO_SHARD);
    return merges;
  }

  /** {@return the decisions up to now} */
  StorageLayout freeze() {
    var roots = new int[parent.length];
    Arrays.setAll(roots, this::root);
    return new StorageLayout(
        roots, shift.clone(), symmetric.clone(), shardOf.clone(), stride.clone(), pitch.clone());
  }

  StorageMerges copy() {
    return new StorageMerges(
        parent.clone(),
        shift.clone(),
        symmetric.clone(),
        joined.clone(),
        shardOf.clone(),
        stride.clone(),
        pitch.clone());
  }

  /** Puts one storage into the memory of another, some bytes after its beginning. */
  void join(int part, int whole, long offset) {
    joined[part] = true;
    joined[whole] = true;
    int from = root(part);
    int to = root(whole);
    if (from == to) {
      return;
    }
    long distance = offset(whole) + offset - offset(part);
    if (distance < 0) {
      int other = from;
      from = to;
      to = other;
    }
    parent[from] = to;
    shift[from] = Math.abs(distance);
    symmetric[to] |= symmetric[from];
  }

  /**
   * Puts a rank's shard of a collective's whole where the whole has it.
   *
   * @param bytes of the shard, or of one of its rows
   */
  void joinShard(int share, int whole, int collective, long bytes) {
    join(share, whole, 0);
    shardOf[share] = collective;
    stride[share] = bytes;
  }

  /** Puts a piece between others of a whole. */
  void joinRows(int piece, int whole, Concatenation.Rows rows) {
    join(piece, whole, rows.offset());
    stride[piece] = rows.bytes();
    pitch[piece] = rows.pitch();
  }

  /** {@return whether a storage is a piece with rows of others between its own} */
  boolean isInRows(int storage) {
    return pitch[storage] > 0;
  }

  /** {@return whether a storage has the memory of another one, or another one has its memory} */
  boolean isJoined(int storage) {
    return joined[storage];
  }

  /** {@return whether a storage is a rank's shard of what a collective gathers or scatters} */
  boolean isShard(int storage) {
    return shardOf[storage] != Placement.NO_SHARD;
  }

  /** {@return where a storage begins in its {@link #root}, in bytes} */
  long offset(int storage) {
    return root(storage) == storage ? 0 : shift[storage];
  }

  /** {@return whether peers need what lies in a storage's memory at the same offset} */
  boolean isSymmetric(int storage) {
    return symmetric[root(storage)];
  }

  /** {@return the storage whose memory this one takes} */
  int root(int storage) {
    int root = storage;
    long distance = 0;
    while (parent[root] != root) {
      distance += shift[root];
      root = parent[root];
    }
    for (int i = storage; i != root && parent[i] != root; ) {
      int next = parent[i];
      long own = shift[i];
      parent[i] = root;
      shift[i] = distance;
      distance -= own;
      i = next;
    }
    return root;
  }
}
