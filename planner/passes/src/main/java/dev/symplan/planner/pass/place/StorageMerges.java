package dev.symplan.planner.pass.place;

import dev.symplan.planner.plan.Placement;
import java.util.Arrays;

/**
 * Which storages take the place of which others, and how far behind its beginning: a forest, whose
 * roots get memory.
 */
public final class StorageMerges {
  private final int[] parent;

  /** Where a storage begins in its parent's place, in bytes. */
  private final long[] shift;

  /** Whether peers need a storage, or what takes its place, at the same offset; for roots. */
  private final boolean[] symmetric;

  private final boolean[] joined;
  private final int[] shareOf;

  private StorageMerges(
      int[] parent, long[] shift, boolean[] symmetric, boolean[] joined, int[] shareOf) {
    this.parent = parent;
    this.shift = shift;
    this.symmetric = symmetric;
    this.joined = joined;
    this.shareOf = shareOf;
  }

  /** Every storage in a place of its own. */
  public static StorageMerges apart(boolean[] symmetric) {
    int count = symmetric.length;
    var places =
        new StorageMerges(
            new int[count], new long[count], symmetric.clone(), new boolean[count], new int[count]);
    Arrays.setAll(places.parent, i -> i);
    Arrays.fill(places.shareOf, Placement.NO_SHARE);
    return places;
  }

  public StorageMerges copy() {
    return new StorageMerges(
        parent.clone(), shift.clone(), symmetric.clone(), joined.clone(), shareOf.clone());
  }

  /** Puts one storage into the place of another, some bytes behind its beginning. */
  public void join(int part, int whole, long offset) {
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

  /** Puts a rank's share of a collective's whole where the whole has it. */
  public void joinShare(int share, int whole, int collective) {
    join(share, whole, 0);
    shareOf[share] = collective;
  }

  /** {@return whether a storage has the place of another one, or another one has its place} */
  public boolean isJoined(int storage) {
    return joined[storage];
  }

  /** {@return the collective that a storage is a rank's share of, or {@link Placement#NO_SHARE}} */
  public int shareOf(int storage) {
    return shareOf[storage];
  }

  public boolean isShare(int storage) {
    return shareOf[storage] != Placement.NO_SHARE;
  }

  /** {@return where a storage begins in the place of its {@link #root}, in bytes} */
  public long offset(int storage) {
    return root(storage) == storage ? 0 : shift[storage];
  }

  /** {@return whether peers need what lies in a storage's place at the same offset} */
  public boolean isSymmetric(int storage) {
    return symmetric[root(storage)];
  }

  /** {@return the storage whose place this one takes} */
  public int root(int storage) {
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
