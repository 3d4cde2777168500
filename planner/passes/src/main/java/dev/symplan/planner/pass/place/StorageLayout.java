package dev.symplan.planner.pass.place;

import dev.symplan.planner.plan.Placement;

/** The storages that lie in the memory of others, and their offsets there. Immutable. */
public final class StorageLayout {
  private final int[] roots;
  private final long[] offsets;
  private final boolean[] symmetric;
  private final int[] shardOf;
  private final long[] stride;
  private final long[] pitch;

  /**
   * Takes over the arrays.
   *
   * @param roots by storage, the one whose memory it lies in: itself if it has its own
   * @param offsets by storage, where it begins in that memory, in bytes
   * @param symmetric by root, whether peers need its memory at the same offset
   * @param shardOf by storage, the collective that it is a rank's shard of, or {@link
   *     Placement#NO_SHARD}
   * @param stride by storage that is a shard, its bytes, or those of a row; by piece in rows, those
   *     of a row
   * @param pitch by piece in rows, how far apart these begin; 0 for others
   */
  StorageLayout(
      int[] roots,
      long[] offsets,
      boolean[] symmetric,
      int[] shardOf,
      long[] stride,
      long[] pitch) {
    this.roots = roots;
    this.offsets = offsets;
    this.symmetric = symmetric;
    this.shardOf = shardOf;
    this.stride = stride;
    this.pitch = pitch;
  }

  /** {@return the storage whose memory a storage lies in} */
  public int root(int storage) {
    return roots[storage];
  }

  /** {@return where a storage begins in the memory of its {@link #root}, in bytes} */
  public long offset(int storage) {
    return roots[storage] == storage ? 0 : offsets[storage];
  }

  /** {@return whether peers need what lies in a storage's memory at the same offset} */
  public boolean isSymmetric(int storage) {
    return symmetric[roots[storage]];
  }

  /** {@return the collective that a storage is a rank's shard of, or {@link Placement#NO_SHARD}} */
  public int shardOf(int storage) {
    return shardOf[storage];
  }

  /** {@return {@link Placement#stride} of a storage} */
  public long stride(int storage) {
    return stride[storage];
  }

  /** {@return {@link Placement#pitch} of a storage} */
  public long pitch(int storage) {
    return pitch[storage];
  }
}
